import { request } from 'node:http';
import { DEPARTED_PATH, type Departed } from '../../src/contract/rpc/forwarded.ts';

/** How long departures are collected: little for a slot, and enough for one notice to tell of many. */
const REPORT_AFTER_MS = 100;

/** Maximum of numbers in a header, of which workerd takes 128 KiB in all. */
const REPORTED_MAX = 1_000;

/** Makes the notices that tell of those connections. */
export function noticesOf(departed: readonly number[]): Departed[] {
  const count = Math.ceil(departed.length / REPORTED_MAX);
  return Array.from({ length: count }, (_, at) => ({
    departed: departed.slice(at * REPORTED_MAX, (at + 1) * REPORTED_MAX),
  }));
}

/**
 * Tells the Worker which clients have left. workerd mostly sees that itself, by the reset of their connections,
 * and always before the notice comes; but not all that it sees it passes on.
 */
export class DepartureNotices {
  readonly #cfHeader: string;
  readonly #targetPort: () => number | null;
  readonly #departed: number[] = [];
  #timer: NodeJS.Timeout | null = null;

  constructor(cfHeader: string, targetPort: () => number | null) {
    this.#cfHeader = cfHeader;
    this.#targetPort = targetPort;
  }

  note(connection: number): void {
    this.#departed.push(connection);
    this.#timer ??= setTimeout(() => this.#report(), REPORT_AFTER_MS).unref();
  }

  close(): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
  }

  /** Sends a notice. One that is lost was for a workerd that has ended, and its calls with it. */
  #report(): void {
    this.#timer = null;
    const port = this.#targetPort();
    const departed = this.#departed.splice(0);
    if (port === null) return;
    for (const notice of noticesOf(departed)) this.#send(port, notice);
  }

  #send(port: number, notice: Departed): void {
    const headers = { [this.#cfHeader]: JSON.stringify(notice) };
    request({ host: '127.0.0.1', port, path: DEPARTED_PATH, headers, agent: false })
      .on('response', (response) => response.resume())
      .on('error', () => {})
      .end();
  }
}
