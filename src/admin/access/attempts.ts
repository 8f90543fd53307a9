import { BoundedMap } from '../../core/parts/bounded-map.ts';
import { steadyClock, pause } from '../../runtime/async.ts';
import { directoryOf, type Env } from '../../env.ts';
import { addressOf, isOwnAddress } from '../../runtime/origin.ts';
import { ProblemError } from '../problem.ts';

/** Failed attempts of one address per minute that are not slowed down, because people mistype. */
const FREE = 5;

/** Delay of the responses to further attempts. It doubles each time. */
const DELAY_MS_MIN = 100;
const DELAY_MS_MAX = 2_000;

/** Failed attempts after which an address is blocked, and for how long. The time is short for legitimate users. */
const BLOCKED_FROM = 20;
const BLOCKED_MS = 10_000;

const ADDRESSES_MAX = 1_000;

const blockedUntil = new BoundedMap<string, number>(ADDRESSES_MAX);

interface SignInClient {
  readonly env: Env;
  readonly req: { readonly raw: Request };
}

/** Rejects an address with too many failed attempts, before its token is checked. */
export function refuseBlocked(context: SignInClient): void {
  const until = blockedUntil.get(addressFor(context)) ?? 0;
  const leftMs = until - steadyClock.now();
  if (leftMs <= 0) return;
  const seconds = Math.ceil(leftMs / 1_000);
  throw new ProblemError(429, `Too many failed attempts. Try again in ${seconds} s.`, {
    headers: { 'retry-after': String(seconds) },
  });
}

/** Delays the response to a wrong token. The directory counts failures across isolates. */
export async function slowDown(context: SignInClient): Promise<void> {
  const address = addressFor(context);
  const failures = await directoryOf(context.env).failedAttempt(address);
  if (failures <= FREE) return;
  // A shared address is only delayed, because a block would affect all of its users.
  if (failures >= BLOCKED_FROM && isOwnAddress(context.env, address)) block(address);
  await pause(Math.min(DELAY_MS_MAX, DELAY_MS_MIN * 2 ** (failures - FREE - 1)));
}

function addressFor({ env, req }: SignInClient): string {
  return addressOf(env, req.raw);
}

function block(address: string): void {
  blockedUntil.set(address, steadyClock.now() + BLOCKED_MS);
}
