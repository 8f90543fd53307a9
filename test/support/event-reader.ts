/** One server-sent event, with its data read as JSON. */
export interface ReadEvent {
  readonly name: string;
  // oxlint-disable-next-line typescript/no-explicit-any -- a test reads many shapes of events
  readonly data: any;
  /** As it came. */
  readonly raw: string;
}

/** Reads a stream of server-sent events as a browser does, and keeps what came. */
export class EventReader {
  readonly events: ReadEvent[] = [];
  /** `done`: the stream ended well. `broken`: it broke off. `closed`: by `close`. */
  readonly end: Promise<'done' | 'broken' | 'closed'>;
  /** Milliseconds after which to come back, as the stream said. */
  retryMs: number | null = null;
  readonly #reader: ReadableStreamDefaultReader<Uint8Array>;
  #isClosed = false;

  constructor(body: ReadableStream) {
    this.#reader = body.getReader() as ReadableStreamDefaultReader<Uint8Array>;
    this.end = this.#read();
  }

  /** The data of all events of that name so far. */
  // oxlint-disable-next-line typescript/no-explicit-any -- as above
  of(name: string): any[] {
    return this.events.filter((event) => event.name === name).map(({ data }) => data);
  }

  /** Leaves, as a page that is closed. */
  async close(): Promise<void> {
    this.#isClosed = true;
    await this.#reader.cancel().catch(() => {});
  }

  async #read(): Promise<'done' | 'broken' | 'closed'> {
    const decoder = new TextDecoder();
    let text = '';
    try {
      for (;;) {
        const { done, value } = await this.#reader.read();
        if (done) return this.#isClosed ? 'closed' : 'done';
        const parts = (text + decoder.decode(value, { stream: true })).split('\n\n');
        text = parts.pop() ?? '';
        for (const part of parts) this.#take(part);
      }
    } catch {
      return this.#isClosed ? 'closed' : 'broken';
    }
  }

  #take(raw: string): void {
    const field = (name: string) => new RegExp(`^${name}: (.*)$`, 'm').exec(raw)?.[1];
    const retry = field('retry');
    if (retry !== undefined) this.retryMs = Number(retry);
    const data = field('data');
    if (data === undefined) return;
    this.events.push({ name: field('event') ?? 'message', data: JSON.parse(data), raw });
  }
}
