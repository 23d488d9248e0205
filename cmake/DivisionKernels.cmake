# Flags per instruction set, by the ending of a kernel's file name: name_avx2.c, name_avx512.c, ...
# A file of another processor family is left out; one without such an ending is plain C.
set(DV_X86_ISAS sse2 avx2 fma avx512 amx)
set(DV_ARM_ISAS neon)
set(DV_FLAGS_avx2 -mavx2 -mf16c)
set(DV_FLAGS_fma -mavx2 -mfma)
set(DV_FLAGS_avx512 -mavx512f -mavx512bw -mavx512dq -mavx512vl -mf16c -mprefer-vector-width=512)
set(DV_FLAGS_amx ${DV_FLAGS_avx512} -mamx-tile -mamx-bf16)

if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|amd64|AMD64)$")
  set(DV_OTHER_ISAS ${DV_ARM_ISAS})
elseif(CMAKE_SYSTEM_PROCESSOR MATCHES "^(aarch64|arm64)$")
  set(DV_OTHER_ISAS ${DV_X86_ISAS})
else()
  set(DV_OTHER_ISAS ${DV_X86_ISAS} ${DV_ARM_ISAS})
endif()

# The endings of files that are to be fast: optimised in every build but Debug, because under a sanitizer they
# are slow enough. gcc must not turn their short copying loops into calls of memcpy, or worse into string
# instructions. All others, the references among them, are compiled like any source.
set(DV_FAST_ISAS baseline ${DV_X86_ISAS} ${DV_ARM_ISAS})
set(DV_FAST_FLAGS
  $<$<NOT:$<CONFIG:Debug>>:-O3> $<$<C_COMPILER_ID:GNU>:-fno-tree-loop-distribute-patterns>)

# Drops from the list `variable` what this processor family does not have, and gives the rest its flags.
function(dv_select_kernels variable)
  set(kept)
  foreach(file IN LISTS ${variable})
    string(REGEX REPLACE "^.*_([a-z0-9]+)\\.c$" "\\1" isa ${file})
    if(isa IN_LIST DV_OTHER_ISAS)
      continue()
    endif()
    if(isa IN_LIST DV_FAST_ISAS)
      set_source_files_properties(${file} PROPERTIES COMPILE_OPTIONS "${DV_FAST_FLAGS};${DV_FLAGS_${isa}}")
    endif()
    list(APPEND kept ${file})
  endforeach()
  set(${variable} ${kept} PARENT_SCOPE)
endfunction()
