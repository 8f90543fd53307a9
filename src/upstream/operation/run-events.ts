import { parseCutJson } from '../json/cut-json.ts';
import { runIn, type SaidOfRun } from './runs.ts';

/** How much is read of a line of a stream: what an event says of its run stands near its beginning. */
const LINE_CHARS_MAX = 16_384;

/** Events that tell how a run stands, told without parsing from the hundreds that carry its text. */
const TELLING =
  /"type"\s*:\s*"response\.(?:created|queued|in_progress|completed|failed|incomplete|cancelled)"|"object"\s*:\s*"thread\.run"/;

/** How far into a line the sign of such an event stands. */
const SIGN_CHARS_MAX = 400;

/** Reads what the events of a stream say of their run, as they pass. */
export class RunEvents {
  readonly #onSaid: (said: SaidOfRun) => void;
  readonly #decoder = new TextDecoder();
  #line = '';
  /** Last news; null: nothing of a run that goes on in the background. */
  said: SaidOfRun | null = null;

  constructor(onSaid: (said: SaidOfRun) => void = () => {}) {
    this.#onSaid = onSaid;
  }

  push(chunk: Uint8Array): void {
    const [first = '', ...rest] = this.#decoder.decode(chunk, { stream: true }).split('\n');
    this.#add(first);
    for (const each of rest) {
      this.#read();
      this.#line = '';
      this.#add(each);
    }
  }

  #add(text: string): void {
    this.#line += text.slice(0, LINE_CHARS_MAX - this.#line.length);
  }

  #read(): void {
    const line = this.#line;
    if (!line.startsWith('data:') || !TELLING.test(line.slice(0, SIGN_CHARS_MAX))) return;
    const { value } = parseCutJson(line.slice('data:'.length));
    if (typeof value !== 'object' || value === null) return;
    const { response, object } = value as { response?: unknown; object?: unknown };
    const isBackground = (response as { background?: unknown } | undefined)?.background === true;
    const isThread = object === 'thread.run';
    const said = isThread || isBackground ? runIn(isThread ? value : response) : null;
    if (said === null) return;
    this.said = said;
    this.#onSaid(said);
  }
}
