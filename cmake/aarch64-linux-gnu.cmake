# Toolchain of the preset `aarch64`: cross-builds with gcc and runs what it built under qemu.
# The libraries come from build/aarch64-root, which scripts/aarch64-root fills.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)

get_filename_component(root ${CMAKE_CURRENT_LIST_DIR}/../build/aarch64-root ABSOLUTE)
set(libraries ${root}/usr/lib/aarch64-linux-gnu)
list(PREPEND CMAKE_PREFIX_PATH ${root}/usr)
set(CMAKE_C_STANDARD_INCLUDE_DIRECTORIES ${root}/usr/include/aarch64-linux-gnu) # headers that differ by machine
set(ENV{PKG_CONFIG_SYSROOT_DIR} ${root})
set(ENV{PKG_CONFIG_LIBDIR} ${libraries}/pkgconfig)
set(CMAKE_EXE_LINKER_FLAGS_INIT -Wl,-rpath-link,${libraries})
set(CMAKE_CROSSCOMPILING_EMULATOR
  qemu-aarch64 -L /usr/aarch64-linux-gnu -E LD_LIBRARY_PATH=${libraries})
