import type { StrictUsage } from './answer.ts';
import type { CountedCall } from './counts.ts';
import { strictNow } from './counts.ts';
import type { StrictFailure } from './failures.ts';
import { WAIT_MS, refusalKindOf } from './failures.ts';
import { refusalForm } from './forms.ts';
import { limitHeaders } from './limit-headers.ts';
import type { RateHold } from './rates.ts';
import type { RefusalForm, StrictProvider, StrictRefusal } from './refusal.ts';
import type { StrictScope } from './scope.ts';
import type { StrictBehaviour, StrictDialect, StrictSettings } from './settings.ts';

/** A call that counts, once its body was read. */
export interface Asking {
  readonly call: CountedCall;
  readonly scope: StrictScope;
  readonly model: string | null;
  readonly dialect: StrictDialect;
  readonly usage: StrictUsage;
  readonly maxOutputTokens: number;
  readonly behaviour: StrictBehaviour;
  readonly failure: StrictFailure | null;
}

/** A granted call's part in all counts of tokens. */
export class Grant {
  readonly #call: CountedCall;
  readonly #hold: RateHold;
  #counted = 0;

  constructor(call: CountedCall, hold: RateHold, inputTokens: number) {
    this.#call = call;
    this.#hold = hold;
    call.grant(inputTokens);
    this.#count();
  }

  /** Counts tokens of the answer as they go out. */
  produce(tokens: number): void {
    this.#hold.produce(tokens, strictNow());
    this.#call.produce(tokens);
    this.#count();
  }

  /** The call is over, however it ended. */
  settle(): void {
    this.#hold.settle(strictNow());
    this.#count();
  }

  #count(): void {
    this.#call.count(this.#hold.countedTokens - this.#counted);
    this.#counted = this.#hold.countedTokens;
  }
}

const providerOf = (
  { refuseAs, refusal }: StrictSettings,
  dialect: StrictDialect,
): StrictProvider => refuseAs ?? (refusal === 'kimi' ? 'moonshot' : refusal) ?? dialect;

/** The refusal that stands before any rate limit: too many in flight, or a failure asked for. */
function earlyRefusal(
  { call, model, behaviour, failure }: Asking,
  at: number,
): StrictRefusal | null {
  const none = { dimension: null, model, requested: 1, at };
  if (call.overLimit !== null) {
    const limit = call.overLimit;
    return { ...none, kind: 'concurrency', limit, used: limit, waitMs: null };
  }
  const kind = refusalKindOf(failure);
  if (kind === null) return null;
  return { ...none, kind, limit: 1, used: 1, waitMs: behaviour.failWaitMs ?? WAIT_MS[kind] };
}

/** Grants a call, or refuses it in the form of the provider. */
export function decide(asking: Asking): Grant | RefusalForm {
  const { call, scope, model, usage, maxOutputTokens, dialect } = asking;
  const { settings, limiter } = scope;
  const now = strictNow();
  const cost = { input: usage.input, cached: usage.cached, maxOutput: maxOutputTokens };
  const early = earlyRefusal(asking, now);
  const { refusal, hold } =
    early === null
      ? limiter.admit(model, settings.rates, cost, now)
      : { refusal: early, hold: null };
  if (hold !== null) return new Grant(call, hold, usage.input);
  const shown = settings.hidesWaits ? { ...refusal, waitMs: null } : refusal;
  const form = refusalForm(providerOf(settings, dialect), shown);
  limiter.countRefused(model, settings.rates, now);
  call.refuse(refusal, form);
  return form;
}

/** The rate-limit headers that belong to an answer given now. */
export function headersNow(
  { settings, limiter }: StrictScope,
  model: string | null,
  dialect: StrictDialect,
): Record<string, string> {
  if (!(settings.sendsLimitHeaders ?? settings.refuseAs !== null)) return {};
  const now = strictNow();
  const states = limiter.states(model, settings.rates, now);
  return limitHeaders(providerOf(settings, dialect), states, now, settings.liesInHeaders);
}
