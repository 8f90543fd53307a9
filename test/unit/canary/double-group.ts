import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Faults } from './double.ts';

export interface Body {
  readonly match?: { readonly models?: readonly string[] };
  readonly limits?: { readonly max_concurrency?: number };
}

/** How long a stream takes, and how often it says something. */
const STREAM = { chunks: 30, everyMs: 100 };

/** A group of the double, with a queue and slots. */
export class DoubleGroup {
  readonly name: string;
  model = '';
  readonly #faults: Faults;
  readonly #waiting = new Set<ServerResponse>();
  readonly #queue: (() => void)[] = [];
  #slots = 0;
  #inUse = 0;
  #rejected = 0;
  #calls = 0;
  #forgotten = 0;

  constructor(name: string, faults: Faults) {
    this.name = name;
    this.#faults = faults;
  }

  configure({ match, limits }: Body): void {
    this.model = match?.models?.[0] ?? this.model;
    this.#slots = limits?.max_concurrency ?? this.#slots;
  }

  reset(): void {
    this.#rejected = 0;
  }

  document(): unknown {
    return { name: this.name, match: { models: [this.model] } };
  }

  decisions(): number {
    return this.#rejected * (this.#faults.countsTwice ? 2 : 1);
  }

  status(): unknown {
    return {
      queued: this.#waiting.size - this.#forgotten,
      in_use: this.#inUse,
      refusals_total: {},
      rejected_total: { busy: this.#rejected },
      limit: { configured: this.#slots },
    };
  }

  call(request: IncomingMessage, response: ServerResponse): void {
    this.#calls += 1;
    if (this.#slots === 0) this.#wait(request, response);
    else this.#serve(request, response);
  }

  #reject(response: ServerResponse, status: number, reason: string): void {
    this.#rejected += 1;
    response.writeHead(status, { 'headgate-reason': reason }).end('{}');
  }

  /** Lets a call wait in a group that grants nothing. */
  #wait(request: IncomingMessage, response: ServerResponse): void {
    const { answers, cutsWaitsAfterMs, delayMs = 0 } = this.#faults;
    const waitMs = parseInt(String(request.headers['headgate-max-wait']), 10);
    // The first group of a run tries whether calls get there, which they do.
    if (this.name.endsWith('-try')) return this.#reject(response, 429, 'busy');
    if (answers !== undefined) return this.#reject(response, answers.status, answers.reason);
    this.#enter(response);
    const leave = (): void => void this.#waiting.delete(response);
    const timer = setTimeout(
      () => {
        leave();
        this.#reject(response, 429, waitMs === 0 ? 'busy' : 'queue_timeout');
      },
      waitMs === 0 ? (this.name.endsWith('-near') ? delayMs : 0) : waitMs,
    );
    if (cutsWaitsAfterMs !== undefined && waitMs > 0) {
      setTimeout(() => response.destroy(), cutsWaitsAfterMs);
    }
    response.on('close', () => {
      clearTimeout(timer);
      if (!this.#faults.keepsLeavers) leave();
    });
    request.resume();
  }

  #enter(response: ServerResponse): void {
    const { forgetsBeyond = Infinity, restartsAt = Infinity } = this.#faults;
    this.#waiting.add(response);
    if (this.#waiting.size > forgetsBeyond) this.#forgotten += 1;
    if (this.#waiting.size >= restartsAt) this.#rejected = 0;
  }

  /** Passes a call on to the upstream once there is a slot. */
  #serve(request: IncomingMessage, response: ServerResponse): void {
    const slots = this.#slots * (this.#faults.overGrants ? 2 : 1);
    if (this.#inUse >= slots) {
      this.#queue.push(() => this.#serve(request, response));
      return;
    }
    this.#inUse += 1;
    response.on('close', () => {
      if (this.#faults.keepsLeavers) return;
      this.#inUse -= 1;
      this.#queue.shift()?.();
    });
    let body = '';
    request.on('data', (data: Buffer) => (body += data.toString('utf8')));
    request.on('end', () => this.#answer(response, body.includes('"stream":true')));
  }

  #answer(response: ServerResponse, isStream: boolean): void {
    const isRefused = this.#faults.refusedByProvider === true && this.#calls % 2 === 0;
    response.writeHead(isRefused ? 403 : 200, { 'cf-ray': '8f00-AMS', 'headgate-wait-ms': '3' });
    if (!isStream) return void response.end('{}');
    let chunks = 0;
    const timer = setInterval(() => {
      chunks += 1;
      response.write('data: {}\n\n');
      if (this.#faults.cutsStreams && chunks === 3) response.destroy();
      if (chunks === STREAM.chunks) response.end();
    }, STREAM.everyMs);
    response.on('close', () => clearInterval(timer));
    response.flushHeaders();
  }
}
