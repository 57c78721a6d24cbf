/* A library that loads and is no NVML, for tests. */
int not_nvml_at_all(void) {
  return 1;
}
