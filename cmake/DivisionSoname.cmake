# Names by which the dynamic linker knows libraries that are not linked.

# dv_find_soname(<paths> <name> <variable>): of the shared library <name> among <paths>, as libcurl.so.4; empty if it is
# not among them.
function(dv_find_soname paths name variable)
  set(${variable} "" PARENT_SCOPE)
  foreach(path IN LISTS paths)
    file(REAL_PATH "${path}" file)
    if(file MATCHES "/(${name}\\.so\\.[0-9]+)[^/]*$")
      set(${variable} "${CMAKE_MATCH_1}" PARENT_SCOPE)
    endif()
  endforeach()
endfunction()
