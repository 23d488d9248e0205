# Finds oneDNN, 2.x or 3.x: target oneDNN::oneDNN. By header and library alone, because the package that
# some distributions install beside them asks every consumer for OpenCL's headers too.
find_path(oneDNN_INCLUDE_DIR oneapi/dnnl/dnnl.h)
find_library(oneDNN_LIBRARY dnnl)

if(oneDNN_INCLUDE_DIR)
  file(STRINGS ${oneDNN_INCLUDE_DIR}/oneapi/dnnl/dnnl_version.h oneDNN_VERSION REGEX "VERSION_(MAJOR|MINOR|PATCH) +[0-9]")
  string(REGEX REPLACE "[^;0-9]" "" oneDNN_VERSION "${oneDNN_VERSION}")
  string(REPLACE ";" "." oneDNN_VERSION "${oneDNN_VERSION}")
endif()
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(oneDNN
  REQUIRED_VARS oneDNN_LIBRARY oneDNN_INCLUDE_DIR VERSION_VAR oneDNN_VERSION
  REASON_FAILURE_MESSAGE "install libdnnl-dev, or name the prefix where it is in CMAKE_PREFIX_PATH")
mark_as_advanced(oneDNN_INCLUDE_DIR oneDNN_LIBRARY)

if(oneDNN_FOUND AND NOT TARGET oneDNN::oneDNN)
  add_library(oneDNN::oneDNN UNKNOWN IMPORTED)
  set_target_properties(oneDNN::oneDNN PROPERTIES
    IMPORTED_LOCATION ${oneDNN_LIBRARY} INTERFACE_INCLUDE_DIRECTORIES ${oneDNN_INCLUDE_DIR})
endif()
