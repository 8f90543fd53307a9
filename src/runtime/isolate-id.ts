let id: string | null = null;

/**
 * Names this isolate, at random and as long as it lives: the runtime gives it no name. Pools tell isolates apart by it, and name
 * what they lend them by it, so it is long enough never to be drawn twice, and short enough to be written down often.
 */
export function isolateId(): string {
  // Random numbers are to be had within a request only.
  id ??= crypto.randomUUID().slice(-12);
  return id;
}
