# The flags that everything is compiled with, as the interface target `division_flags`.
# Floating point stays as written: no contraction, no reordering, the same bits everywhere.
add_library(division_flags INTERFACE)

target_compile_options(division_flags INTERFACE
  -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wvla
  -Wconversion -Wno-sign-conversion
  -ffp-contract=off -fno-math-errno -fno-trapping-math
  -fvisibility=hidden
  $<$<BOOL:${DV_WERROR}>:-Werror>)

if(DV_SANITIZE)
  set(sanitize -fsanitize=${DV_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  target_compile_options(division_flags INTERFACE ${sanitize})
  target_link_options(division_flags INTERFACE ${sanitize})
endif()
