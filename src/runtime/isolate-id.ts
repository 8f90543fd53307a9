let id: string | null = null;

/** Names this isolate, at random and as long as it lives: the runtime gives it no name. */
export function isolateId(): string {
  // Random numbers are to be had within a request only.
  id ??= crypto.randomUUID().slice(0, 8);
  return id;
}
