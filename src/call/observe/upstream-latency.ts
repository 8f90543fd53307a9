/** Weight of the newest call in the mean. */
const WEIGHT = 0.1;

/** How long each upstream takes to its headers, as far as this isolate has seen. */
const means = new Map<string, number>();

/** Takes the time to the headers of one call into the mean of its upstream. */
export function noteLatency(upstreamId: string, ms: number): void {
  const mean = means.get(upstreamId);
  means.set(upstreamId, mean === undefined ? ms : mean + WEIGHT * (ms - mean));
}

/** Mean time to the headers, in milliseconds. 0 where nothing is known, so that it comes to be known. */
export function latencyMs(upstreamId: string): number {
  return means.get(upstreamId) ?? 0;
}
