"""migration: the way over from kopf. `converter` reads and writes source; `bridge` is what the written source runs on;
`cleaning` takes kopf's marks off live objects; `peers` sees kopf operators that still run."""
