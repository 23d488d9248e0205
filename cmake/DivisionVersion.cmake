# The version and the ABI number, from the header that programs see: dv_version ("0.1.0") and dv_abi ("1").
set(dv_version_header ${CMAKE_CURRENT_LIST_DIR}/../include/division/version.h)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${dv_version_header})

function(dv_read_number macro variable)
  file(STRINGS ${dv_version_header} line REGEX "^#define ${macro} [0-9]+$")
  if(NOT line)
    message(FATAL_ERROR "${dv_version_header}: no line \"#define ${macro} NUMBER\"")
  endif()
  string(REGEX REPLACE ".* " "" number ${line})
  set(${variable} ${number} PARENT_SCOPE)
endfunction()

dv_read_number(DV_VERSION_MAJOR dv_major)
dv_read_number(DV_VERSION_MINOR dv_minor)
dv_read_number(DV_VERSION_PATCH dv_patch)
dv_read_number(DV_ABI dv_abi)
set(dv_version ${dv_major}.${dv_minor}.${dv_patch})
