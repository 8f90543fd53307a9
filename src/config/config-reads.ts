/** How often this isolate needed the configuration, and how often it waited for it. */
const reads = { all: 0, waited: 0 };

/** Notes that a request needs the configuration. */
export function noteRead(): void {
  reads.all += 1;
}

/** Notes that the request has to wait until it is there. */
export function noteWait(): void {
  reads.waited += 1;
}

/** Tells both figures. */
export function configReads(): Readonly<typeof reads> {
  return reads;
}
