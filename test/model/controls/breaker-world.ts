import { assert } from 'vitest';
import {
  allows,
  closedBreaker,
  keepProbes,
  nextChangeAt,
  noteEnded,
  noteFailed,
  noteGranted,
  noteServed,
  type Breaker,
  type CallResult,
} from '../../../src/core/parts/breaker.ts';
import { instant, leaseId } from '../../../src/core/words/ids.ts';

export type BreakerAction =
  | { readonly kind: 'ask' | 'to_change' }
  | {
      readonly kind: 'served' | 'failed' | 'cancelled' | 'lost';
      readonly pick: number;
      readonly retryAfterMs: number | null;
    }
  | { readonly kind: 'advance'; readonly ms: number }
  | { readonly kind: 'reset'; readonly isLossy: boolean };

/** A breaker and the calls that it let pass. After each action it checks what must always hold. */
export class BreakerWorld {
  breaker: Breaker = closedBreaker();
  now = instant(1_000_000);
  live: CallResult[] = [];
  readonly phases = new Set<string>();
  #asked = 0;

  run(action: BreakerAction): void {
    switch (action.kind) {
      case 'ask':
        this.ask();
        break;
      case 'advance':
        this.now = instant(this.now + action.ms);
        break;
      case 'to_change':
        this.now = instant(Math.max(this.now, this.breaker.openUntil));
        assert.equal(nextChangeAt(this.breaker, this.now), Infinity);
        break;
      case 'reset':
        this.#reset(action.isLossy);
        break;
      case 'served':
      case 'failed':
      case 'cancelled':
      case 'lost':
        this.#end(action.kind, action.pick, action.retryAfterMs);
    }
    this.#check();
  }

  ask(): CallResult | null {
    if (!allows(this.breaker, this.now)) return null;
    const wasClosed = this.breaker.phase === 'closed';
    const call = { leaseId: leaseId(`call-${this.#asked++}.1`), grantedAt: this.now };
    noteGranted(this.breaker, call.leaseId);
    this.live.push(call);
    assert.equal(this.breaker.phase, wasClosed ? 'closed' : 'half_open');
    return call;
  }

  #end(kind: string, pick: number, retryAfterMs: number | null): void {
    const call = this.live[pick % Math.max(1, this.live.length)];
    if (call === undefined) return;
    // A call that was served goes on: its lease ends later, or never.
    if (kind === 'served') return noteServed(this.breaker, call, this.now);
    if (kind === 'failed') noteFailed(this.breaker, { ...call, retryAfterMs }, this.now);
    noteEnded(this.breaker, call.leaseId, kind === 'lost', this.now);
    this.live = this.live.filter((each) => each !== call);
  }

  #reset(isLossy: boolean): void {
    this.breaker = JSON.parse(JSON.stringify(this.breaker)) as Breaker;
    if (isLossy) this.live = [];
    const alive = new Set(this.live.map((call) => call.leaseId));
    keepProbes(this.breaker, (id) => alive.has(id));
  }

  #check(): void {
    const { phase, probes, served, openUntil, results } = this.breaker;
    this.phases.add(phase);
    assert.isAtMost(results.length, 20);
    const alive = new Set(this.live.map((call) => call.leaseId));
    assert(
      probes.every((probe) => alive.has(probe)),
      'a dead probe holds a permit',
    );
    const isAllowed = allows(this.breaker, this.now);
    switch (phase) {
      case 'closed':
        assert(isAllowed);
        break;
      case 'open':
        assert.equal(isAllowed, this.now >= openUntil);
        break;
      case 'half_open':
        assert.equal(isAllowed, probes.length < (served === 0 ? 1 : 3));
    }
    if (phase !== 'half_open') assert.isEmpty(probes);
  }
}
