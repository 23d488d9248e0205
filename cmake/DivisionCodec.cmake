# base and codec: compiled once, for libdivision and for libdivision_codec.
#
# libdivision_codec is what bindings/python carries: the functions of division/codec.h and division/packed.h. It needs
# the C library alone. It names no OpenMP runtime either, although it uses one: whoever loads it has one already, or loads
# one before. A process with PyTorch has PyTorch's, in some versions under a name of its own, and threads of a second one
# would wait busily on the cores that the first computes on (docs/pytorch.md).
file(GLOB codec_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/base/*.c ${PROJECT_SOURCE_DIR}/src/codec/*.c)
list(REMOVE_ITEM codec_sources ${PROJECT_SOURCE_DIR}/src/base/info.c) # tells the versions of all other libraries
file(GLOB codec_kernels CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/codec/kernels/*.c)
dv_select_kernels(codec_kernels)

add_library(division_codec_objects OBJECT ${codec_sources} ${codec_kernels})
set_target_properties(division_codec_objects PROPERTIES POSITION_INDEPENDENT_CODE ON)
target_include_directories(division_codec_objects PRIVATE include src)
target_link_libraries(division_codec_objects PRIVATE division_flags Threads::Threads)
separate_arguments(openmp_flags UNIX_COMMAND "${OpenMP_C_FLAGS}")
target_compile_options(division_codec_objects PRIVATE ${openmp_flags})

add_library(division_codec SHARED $<TARGET_OBJECTS:division_codec_objects>)
target_link_libraries(division_codec PRIVATE division_flags m)
target_link_options(division_codec PRIVATE -Wl,--as-needed)
