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

/** The members that have refused one call, and why. None of them is asked again before all have refused it. */
export class RefusedMembers {
  readonly #kinds = new Map<string, RefusalKind>();
  readonly #once = new Set<string>();
  readonly #again = new Set<string>();
  readonly #slow = new Set<string>();
  #isPatient = false;
  /** Refusals that may eject members, each with its group and time. */
  readonly #refusals: (Omit<Blame, 'agoMs'> & { readonly group: string; readonly at: number })[] =
    [];

  note(id: string, kind: RefusalKind): void {
    if (this.#once.has(id)) this.#again.add(id);
    this.#once.add(id);
    this.#kinds.set(id, kind);
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
      this.#kinds.delete(id);
      this.#once.delete(id);
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
    return this.#kinds.has(id);
  }

  get ids(): readonly string[] {
    return [...this.#kinds.keys()];
  }

  /**
   * Members with a single temporary refusal. The call may return to them before all have refused it, once they serve
   * other calls.
   */
  get idsForNow(): readonly string[] {
    return this.ids.filter(
      (id) => WAITABLE.has(this.#kinds.get(id) ?? 'error') && !this.#again.has(id),
    );
  }

  /**
   * The refusal that waiting may help, preferring the one for concurrency, which ends soonest. null if there is none.
   */
  get waitable(): RefusalKind | null {
    const kinds = [...this.#kinds.values()].filter((kind) => WAITABLE.has(kind));
    return kinds.includes('concurrency') ? 'concurrency' : (kinds[0] ?? null);
  }

  get isRetriable(): boolean {
    return [...this.#kinds.values()].some((kind) => RETRIABLE.has(kind));
  }

  /** Lets the call return to the members with temporary refusals. */
  forgetWaitable(): void {
    this.#forget(WAITABLE);
  }

  /** The same for members that failed. */
  forgetRetriable(): void {
    this.#forget(RETRIABLE);
  }

  #forget(kinds: ReadonlySet<RefusalKind>): void {
    for (const [id, kind] of this.#kinds) if (kinds.has(kind)) this.#kinds.delete(id);
  }
}
