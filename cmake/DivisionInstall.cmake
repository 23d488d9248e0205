# Installation: headers, both libraries, the program, division.pc and the CMake package.
include(CMakePackageConfigHelpers)

install(DIRECTORY include/division DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.h"
  PATTERN tools EXCLUDE) # the program's own
install(TARGETS division_shared division_static EXPORT division
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
if(TARGET division_program)
  install(TARGETS division_program RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
  include(cmake/DivisionManual.cmake)
endif()
if(TARGET division_mpi)
  install(TARGETS division_mpi LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/division)
endif()
install(FILES README.md LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(DIRECTORY docs DESTINATION ${CMAKE_INSTALL_DOCDIR}) # where the README's links and pictures are
install(DIRECTORY recipes DESTINATION ${CMAKE_INSTALL_DATADIR}/division)

set(package_directory ${CMAKE_INSTALL_LIBDIR}/cmake/division)
install(EXPORT division NAMESPACE division:: FILE division-targets.cmake DESTINATION ${package_directory})
configure_package_config_file(cmake/division-config.cmake.in division-config.cmake
  INSTALL_DESTINATION ${package_directory})
write_basic_package_version_file(division-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/division-config.cmake ${PROJECT_BINARY_DIR}/division-config-version.cmake
  cmake/FindoneDNN.cmake DESTINATION ${package_directory})

# Paths in division.pc are relative to where it lies, so that a prefix can be moved as a whole.
set(pkgconfig_directory ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
file(RELATIVE_PATH prefix_from_pkgconfig
  ${CMAKE_INSTALL_PREFIX}/${pkgconfig_directory} ${CMAKE_INSTALL_PREFIX})
get_filename_component(oneDNN_directory ${oneDNN_LIBRARY} DIRECTORY)
set(oneDNN_LINK_FLAGS -ldnnl)
if(NOT oneDNN_directory IN_LIST CMAKE_C_IMPLICIT_LINK_DIRECTORIES)
  set(oneDNN_LINK_FLAGS "-L${oneDNN_directory} -ldnnl")
endif()
configure_file(cmake/division.pc.in division.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/division.pc DESTINATION ${pkgconfig_directory})
