import { RAMP_MS } from '../../../src/core/parts/pause.ts';
import type { Scope } from '../../../src/core/words/signal.ts';
import type { Holder } from '../../../src/core/words/ticket.ts';

/** The calls that an upstream refuses: those of a model, of a model's service tier, or with a key. */
export type RefusalsRefused = 'model' | 'tier' | 'credential';

/** A refusal with the calls that its upstream refuses. */
interface FleetRefusal {
  readonly member: string;
  readonly scope: Scope;
  readonly at: number;
  readonly until: number;
}

/** How soon a second key confirms a refusal. */
const CONFIRMED_WITHIN_MS = 60_000;

/** The refusals of a fleet's upstreams, and the calls that each may hold: those that it is about, and no others. */
export class Refusals {
  readonly #all: FleetRefusal[] = [];

  /** Notes that a member refused a call. Calls of another tier are refused only for that tier. */
  note(member: string, holder: Holder, about: RefusalsRefused, at: number, forMs: number): void {
    const { model, tier = null, credential = null } = holder;
    const isOfModel = about !== 'credential' || tier !== null;
    const scope: Scope = { model: isOfModel ? model : null, tier, credential };
    this.#all.push({ member, scope, at, until: at + forMs + RAMP_MS });
  }

  /** Whether a refusal at a member may hold a call, while its calls are refused or start again step by step. */
  mayHold(member: string, { model, tier, credential }: Holder, now: number): boolean {
    return this.#all.some((refusal) => {
      if (refusal.member !== member || now >= refusal.until) return false;
      const { scope } = refusal;
      if (scope.model !== null && scope.model !== model) return false;
      if (scope.tier !== null && scope.tier !== tier) return false;
      const isOfKey = scope.credential === null || scope.credential === credential;
      return isOfKey || this.#isConfirmed(refusal);
    });
  }

  /** Whether another key was refused in the same way, shortly before or after. */
  #isConfirmed({ member, scope, at }: FleetRefusal): boolean {
    return this.#all.some(
      (other) =>
        other.member === member &&
        other.scope.model === scope.model &&
        other.scope.tier === scope.tier &&
        other.scope.credential !== scope.credential &&
        other.scope.credential !== null &&
        Math.abs(other.at - at) <= CONFIRMED_WITHIN_MS,
    );
  }
}
