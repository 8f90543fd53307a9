import OpenAI, { RateLimitError } from 'openai';
import type { CallLine, CallState } from './board.ts';
import { Board } from './board.ts';

/** Outcome of a round of calls, as their clients saw it. */
export interface DemoRound {
  readonly refused: number;
  readonly completed: number;
  readonly totalMs: number;
}

export interface RoundOptions {
  readonly baseURL: string;
  readonly calls: number;
  /** Chunks that a whole answer has. */
  readonly chunks: number;
  /** The word for a call whose first chunk is not here. */
  readonly waitingWord: string;
}

/** Sends so many streaming calls at once with the official SDK, its retries off, and shows them. */
export async function runRound(options: RoundOptions): Promise<DemoRound> {
  const { baseURL, calls, chunks, waitingWord } = options;
  const client = new OpenAI({ apiKey: 'practice-key', baseURL, maxRetries: 0 });
  const lines = Array.from({ length: calls }, (): CallLine => ({
    state: 'waiting',
    chunks: 0,
    waitedMs: null,
    endedMs: null,
  }));
  const board = new Board(lines, waitingWord, chunks);
  const startedAt = performance.now();
  const elapsed = (): number => performance.now() - startedAt;
  board.draw();

  const runCall = async (line: CallLine, index: number): Promise<void> => {
    const enter = (state: CallState): void => {
      line.state = state;
      board.update(index, true);
    };
    board.update(index, true);
    try {
      const stream = await client.chat.completions.create({
        model: 'practice',
        stream: true,
        messages: [{ role: 'user', content: `Say something about the number ${index + 1}.` }],
      });
      for await (const chunk of stream) {
        if (!chunk.choices[0]?.delta.content) continue;
        line.chunks += 1;
        line.waitedMs ??= elapsed();
        if (line.chunks === 1) enter('streaming');
        else board.update(index, false);
      }
      line.endedMs = elapsed();
      // A stream that was cut ends like any other in this SDK; only its length tells.
      enter(line.chunks === chunks ? 'done' : 'failed');
    } catch (error) {
      line.endedMs = elapsed();
      enter(error instanceof RateLimitError ? '429' : 'failed');
    }
  };
  await Promise.all(lines.map(runCall));

  const count = (state: CallState): number => lines.filter((line) => line.state === state).length;
  return { refused: count('429'), completed: count('done'), totalMs: elapsed() };
}
