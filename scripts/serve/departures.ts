import { request } from 'node:http';
import { DEPARTED_PATH, type Departed } from '../../src/contract/http.ts';

/** How long departures are collected. It delays the release of a slot only a little, and one notice reports many. */
const REPORT_AFTER_MS = 100;

/** Maximum connection numbers in a header. workerd accepts headers of 128 KiB in total. */
const REPORTED_MAX = 1_000;

export function noticesOf(departed: readonly number[]): Departed[] {
  const count = Math.ceil(departed.length / REPORTED_MAX);
  return Array.from({ length: count }, (_, at) => ({
    departed: departed.slice(at * REPORTED_MAX, (at + 1) * REPORTED_MAX),
  }));
}

/**
 * Reports disconnected clients to the Worker. workerd usually detects them itself, by the reset of their connections
 * and before the notice arrives, but it does not forward every disconnect to the Worker.
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

  /** Sends notices. A notice that is lost was for a workerd that has ended together with its calls. */
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
