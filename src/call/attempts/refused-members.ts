import { memberId } from '../../core/words/ids.ts';
import { takesOut, type Blame, type RefusalKind } from '../../core/words/signal.ts';

/** Kinds of refusals that end when other calls end, or after a moment. */
const WAITABLE: ReadonlySet<RefusalKind> = new Set([
  'concurrency',
  'requests',
  'tokens',
  'ramp',
  'unknown',
]);

/** Kinds after which the same call may be retried, if its group allows that. */
const RETRIABLE: ReadonlySet<RefusalKind> = new Set(['overload', 'error']);

/** Whether a member failed, rather than refused. */
export function isFailure(kind: RefusalKind): boolean {
  return RETRIABLE.has(kind);
}

/** A member that has refused a call. */
export interface RefusedMember {
  readonly id: string;
  /** null if the call may return to it. */
  readonly kind: RefusalKind | null;
  readonly times: number;
}

/** The members that have refused one call, and why. None of them is asked again before all have refused it. */
export class RefusedMembers {
  readonly #members: Map<string, RefusedMember>;
  readonly #slow = new Set<string>();
  #isPatient = false;
  /** Refusals that may eject members, each with its group and time. */
  readonly #refusals: (Omit<Blame, 'agoMs'> & { readonly group: string; readonly at: number })[] =
    [];

  constructor(past: readonly RefusedMember[]) {
    this.#members = new Map(past.map((one) => [one.id, one]));
  }

  get all(): readonly RefusedMember[] {
    return [...this.#members.values()];
  }

  note(id: string, kind: RefusalKind): void {
    const times = (this.#members.get(id)?.times ?? 0) + 1;
    this.#members.set(id, { id, kind, times });
  }

  /** Notes a member that sent no content in time. */
  noteSlow(id: string): void {
    this.#slow.add(id);
    this.note(id, 'error');
  }

  /** Whether the call has already returned to a slow member, which may then take as long as it needs. */
  get isPatient(): boolean {
    return this.#isPatient;
  }

  /** Allows the call to return once to its slow members, without a timeout. Returns false if there are none. */
  forgetSlow(): boolean {
    if (this.#isPatient || this.#slow.size === 0) return false;
    this.#isPatient = true;
    for (const id of this.#slow) {
      const { times } = this.#members.get(id) ?? { times: 1 };
      this.#members.set(id, { id, kind: null, times: times - 1 });
    }
    return true;
  }

  /** Notes a member's own refusal. The member is to blame if another one of the group serves the call. */
  noteSaid(group: string, id: string, kind: RefusalKind, at: number): void {
    if (takesOut(kind)) this.#refusals.push({ group, member: memberId(id), kind, at });
  }

  /** The members to blame once another member of the group has served the call. */
  blamedIn(group: string, now: number): readonly Blame[] {
    const refusals = this.#refusals.filter((one) => one.group === group);
    return refusals.map(({ member, kind, at }) => ({ member, kind, agoMs: now - at }));
  }

  has(id: string): boolean {
    return (this.#members.get(id)?.kind ?? null) !== null;
  }

  get ids(): readonly string[] {
    return this.#refused.map(({ id }) => id);
  }

  /**
   * Members with a single temporary refusal. The call may return to them before all have refused it, once they serve
   * other calls.
   */
  get idsForNow(): readonly string[] {
    const forNow = this.#refused.filter(({ kind, times }) => WAITABLE.has(kind) && times === 1);
    return forNow.map(({ id }) => id);
  }

  /**
   * The refusal that waiting may help, preferring the one for concurrency, which ends soonest. null if there is none.
   */
  get waitable(): RefusalKind | null {
    const kinds = this.#refused.map(({ kind }) => kind).filter((kind) => WAITABLE.has(kind));
    return kinds.includes('concurrency') ? 'concurrency' : (kinds[0] ?? null);
  }

  get isRetriable(): boolean {
    return this.#refused.some(({ kind }) => RETRIABLE.has(kind));
  }

  /** Lets the call return to the members with temporary refusals. */
  forgetWaitable(): void {
    this.#forget(WAITABLE);
  }

  /** The same for members that failed. */
  forgetRetriable(): void {
    this.#forget(RETRIABLE);
  }

  get #refused(): readonly (RefusedMember & { readonly kind: RefusalKind })[] {
    return this.all.flatMap(({ kind, ...one }) => (kind === null ? [] : [{ ...one, kind }]));
  }

  #forget(kinds: ReadonlySet<RefusalKind>): void {
    for (const one of this.#refused) {
      if (kinds.has(one.kind)) this.#members.set(one.id, { ...one, kind: null });
    }
  }
}
