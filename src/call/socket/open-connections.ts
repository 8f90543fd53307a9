import type { Upstream } from '../../contract/config/upstream.ts';
import { plural } from '../../core/words/figures.ts';
import { logEvent } from '../../runtime/log.ts';
import { steadyClock } from '../../runtime/clock.ts';
import type { Caller } from '../identity/authenticate.ts';
import { rejected, type Rejected } from '../result.ts';

/** Minimum time between two log lines about the same upstream. */
const SILENT_MS = 60_000;

/** Retry delay of a refused caller. An unused connection closes after minutes, and others at any time. */
const RETRY_AFTER_MS = 30_000;

/**
 * Counts the connections for turns of this isolate by caller and upstream. They take no slot, so no group limits them.
 */
class OpenConnections {
  readonly #counts = new Map<string, number>();
  /** When a refusal was last logged, by upstream. */
  readonly #loggedAt = new Map<string, number>();

  /** Counts one more connection until the returned function is called. Rejects it if the caller has too many. */
  add(
    { id: upstream, turnConnectionsEach: max }: Upstream,
    { id: caller }: Caller,
  ): AddedConnection | Rejected {
    const name = `${upstream} ${caller}`;
    const before = this.#counts.get(name) ?? 0;
    if (before >= max) {
      this.#log(upstream, caller, max);
      return rejected(tooMany(upstream, max));
    }
    this.#counts.set(name, before + 1);
    let isRemoved = false;
    const remove = (): void => {
      if (isRemoved) return;
      isRemoved = true;
      const left = (this.#counts.get(name) ?? 1) - 1;
      if (left === 0) this.#counts.delete(name);
      else this.#counts.set(name, left);
    };
    return { kind: 'added', remove };
  }

  /** Logs a refusal, because no group counts it. */
  #log(upstream: string, caller: string, max: number): void {
    const now = steadyClock.now();
    if (now - (this.#loggedAt.get(upstream) ?? -Infinity) < SILENT_MS) return;
    this.#loggedAt.set(upstream, now);
    logEvent('too_many_connections', { upstream, caller, turn_connections_each: max });
  }
}

interface AddedConnection {
  readonly kind: 'added';
  readonly remove: () => void;
}

function tooMany(upstream: string, max: number): Rejected['reply'] {
  const message = `This caller already has ${plural(max, 'open connection')} for turns to upstream \`${upstream}\`, which is the maximum. Close one, use HTTP, or ask the operator to raise \`turn_connections_each\` of the upstream.`;
  return { reason: 'too_many_connections', message, retryAfterMs: RETRY_AFTER_MS };
}

export const openConnections = new OpenConnections();
