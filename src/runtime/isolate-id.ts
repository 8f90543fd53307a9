let id: string | null = null;

/**
 * Returns the random id of this isolate, because the runtime gives it none. Pools use it to identify isolates and to
 * name their prefetched slots. It is long enough to be unique and short enough to be stored often.
 */
export function isolateId(): string {
  // The runtime provides random numbers only within a request.
  id ??= crypto.randomUUID().slice(-12);
  return id;
}
