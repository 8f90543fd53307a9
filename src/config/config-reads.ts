/** How often this isolate needed the configuration, and how often it waited for it. */
const reads = { all: 0, waited: 0 };

/** Counts a request that needs the configuration. */
export function noteRead(): void {
  reads.all += 1;
}

/** Counts a request that has to wait for the configuration. */
export function noteWait(): void {
  reads.waited += 1;
}

export function configReads(): Readonly<typeof reads> {
  return reads;
}
