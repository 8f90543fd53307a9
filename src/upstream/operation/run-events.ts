import { parseCutJson } from '../json/cut-json.ts';
import { runIn, type SaidOfRun } from './runs.ts';

/** How much is read of a line of a stream: what an event says of its run stands near its beginning. */
const LINE_CHARS_MAX = 16_384;

/** Events that tell how a run stands, told without parsing from the hundreds that carry its text. */
const TELLING =
  /"type"\s*:\s*"response\.(?:created|queued|in_progress|completed|failed|incomplete|cancelled)"|"object"\s*:\s*"thread\.run"/;

/** The same of Gemini's interactions. */
const TELLING_INTERACTION = /"event_type"\s*:\s*"interaction\./;

/** How far into a line the sign of such an event stands. */
const SIGN_CHARS_MAX = 400;

/** Reads what an answer says of a run as its bytes pass. */
export interface RunReader {
  push(chunk: Uint8Array): void;
  readonly said: SaidOfRun | null;
}

/** Reads what the events of a stream say of their run, as they pass. */
export class RunEvents implements RunReader {
  readonly #onSaid: (said: SaidOfRun) => void;
  readonly #decoder = new TextDecoder();
  #line = '';
  /** The stream is that of an answer in the foreground: nothing more of it is read. */
  #isOver = false;
  /** Last news; null: nothing of a run that goes on in the background. */
  said: SaidOfRun | null = null;

  constructor(onSaid: (said: SaidOfRun) => void = () => {}) {
    this.#onSaid = onSaid;
  }

  push(chunk: Uint8Array): void {
    if (this.#isOver) return;
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
    if (this.#isOver || !line.startsWith('data:')) return;
    const sign = line.slice(0, SIGN_CHARS_MAX);
    if (!TELLING.test(sign) && !TELLING_INTERACTION.test(sign)) return;
    const { value } = parseCutJson(line.slice('data:'.length));
    if (typeof value !== 'object' || value === null) return;
    const { response, interaction, object } = value as Readonly<Record<string, unknown>>;
    const isThread = object === 'thread.run';
    const told = isThread ? value : (response ?? interaction);
    if (typeof told !== 'object' || told === null) return;
    const { background } = told as { background?: unknown };
    if (!isThread && background !== true) {
      // All of its events would say so. Where the line was cut, the word may stand behind the cut.
      this.#isOver = background !== undefined || line.length < LINE_CHARS_MAX;
      return;
    }
    const said = runIn(told);
    if (said === null) return;
    this.said = said;
    this.#onSaid(said);
  }
}
