/* Methods by their shortest name, so that runs and benchmarks of one method meet however they spelt it. */
#ifndef DV_REPORT_METHOD_TEXT_H
#define DV_REPORT_METHOD_TEXT_H

/* Takes options away, in place, that say what the method does anyway: "division:block=8,bits=2" becomes "division". A
 * method that this version does not know stays as it is. */
void dv_method_shorten(char *method);

#endif
