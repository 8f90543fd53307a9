let id: string | null = null;

/** Reads the id of this isolate: it is drawn with the first call, because nothing is random while an isolate begins. */
export function isolateId(): string {
  id ??= crypto.randomUUID();
  return id;
}
