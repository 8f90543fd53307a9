export type CallState = 'waiting' | 'streaming' | 'done' | '429' | 'failed';

export interface CallLine {
  state: CallState;
  chunks: number;
  /** Milliseconds from the start of the call to its first chunk or its rejection. */
  waitedMs: number | null;
  endedMs: number | null;
}

const BAR_WIDTH = 24;
const COLOURS: Readonly<Record<CallState, number>> = {
  waiting: 33,
  streaming: 36,
  done: 32,
  '429': 31,
  failed: 31,
};

const seconds = (ms: number | null): string => (ms === null ? '' : `${(ms / 1_000).toFixed(1)} s`);

/**
 * Shows one line per call. On a terminal the lines are redrawn in place. Otherwise each change is printed as a line.
 */
export class Board {
  readonly #lines: readonly CallLine[];
  readonly #waitingWord: string;
  readonly #chunksMax: number;
  readonly #inPlace: boolean;
  #drawn = false;

  constructor(lines: readonly CallLine[], waitingWord: string, chunksMax: number) {
    this.#lines = lines;
    this.#waitingWord = waitingWord;
    this.#chunksMax = chunksMax;
    // A list that is longer than the screen cannot be redrawn, because the cursor cannot reach its first lines.
    this.#inPlace = process.stdout.isTTY && process.stdout.rows > lines.length + 2;
  }

  /** Shows the progress of a call. `stateChanged` is false if only its number of chunks has changed. */
  update(index: number, stateChanged: boolean): void {
    if (this.#inPlace) this.draw();
    else if (stateChanged) this.#say(index);
  }

  draw(): void {
    if (!this.#inPlace) return;
    const up = this.#drawn ? `\u001B[${this.#lines.length}A` : '';
    this.#drawn = true;
    const rows = this.#lines.map((line, index) => `\u001B[2K${this.#row(line, index)}\n`);
    process.stdout.write(up + rows.join(''));
  }

  #word(line: CallLine): string {
    return line.state === 'waiting' ? this.#waitingWord : line.state;
  }

  #say(index: number): void {
    const line = this.#lines[index];
    if (line === undefined) return;
    const at = seconds(line.endedMs ?? line.waitedMs);
    console.log(`  call ${String(index + 1).padStart(2)}  ${this.#word(line).padEnd(10)} ${at}`);
  }

  #row(line: CallLine, index: number): string {
    const filled = Math.round((BAR_WIDTH * line.chunks) / this.#chunksMax);
    const bar = '█'.repeat(filled) + '░'.repeat(Math.max(0, BAR_WIDTH - filled));
    const word = `\u001B[${COLOURS[line.state]}m${this.#word(line).padEnd(10)}\u001B[0m`;
    const waited = line.waitedMs === null ? '' : `first token after ${seconds(line.waitedMs)}`;
    return `  call ${String(index + 1).padStart(2)}  ${bar}  ${word} ${line.state === '429' ? '' : waited}`;
  }
}
