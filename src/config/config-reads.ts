/** How often this isolate needed the configuration, and how often it waited for it. */
const reads = { all: 0, waited: 0 };

export function noteRead(): void {
  reads.all += 1;
}

export function noteWait(): void {
  reads.waited += 1;
}

export function configReads(): Readonly<typeof reads> {
  return reads;
}
