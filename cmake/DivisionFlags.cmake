# The flags that everything is compiled with, as the interface target `division_flags`.
# Floating point stays as written: no contraction, no reordering, the same bits everywhere.
add_library(division_flags INTERFACE)

target_compile_options(division_flags INTERFACE
  -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wvla
  -Wconversion -Wno-sign-conversion
  -ffp-contract=off -fno-math-errno -fno-trapping-math
  -fvisibility=hidden
  $<$<C_COMPILER_ID:Clang>:-Wno-enum-float-conversion> # of clang 19: named numbers are enums here, also among doubles
  $<$<BOOL:${DV_WERROR}>:-Werror>)

if(DV_SANITIZE)
  set(sanitize -fsanitize=${DV_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  # clang says where its sanitizers keep a loop from being vectorised as asked: no mistake here.
  target_compile_options(division_flags INTERFACE ${sanitize} $<$<C_COMPILER_ID:Clang>:-Wno-pass-failed>)
  target_link_options(division_flags INTERFACE ${sanitize})
endif()
