import { BoundedMap } from '../../core/parts/bounded-map.ts';
import { steadyClock } from '../../runtime/steady-clock.ts';
import { directoryOf, type Env } from '../../env.ts';
import { addressOf, isOwnAddress } from '../../runtime/address.ts';
import { pause } from '../../runtime/background.ts';
import { ProblemError } from '../problem.ts';

/** Maximum failed attempts of one address within a minute that cost nothing: people mistype. */
const FREE = 5;

/** How long those after them wait for their answers, twice as long each time. */
const DELAY_MS_MIN = 100;
const DELAY_MS_MAX = 2_000;

/** Minimum failed attempts for which an address is not listened to, and how long: short for whoever has the token. */
const BLOCKED_FROM = 20;
const BLOCKED_MS = 10_000;

/** Maximum addresses that an isolate remembers. */
const ADDRESSES_MAX = 1_000;

/** Addresses that are not listened to, and until when. */
const blockedUntil = new BoundedMap<string, number>(ADDRESSES_MAX);

/** The part of a request that says where it comes from. */
interface SignInClient {
  readonly env: Env;
  readonly req: { readonly raw: Request };
}

/** Refuses an address that failed too often, before its token is looked at. */
export function refuseBlocked(context: SignInClient): void {
  const until = blockedUntil.get(addressFor(context)) ?? 0;
  const leftMs = until - steadyClock.now();
  if (leftMs <= 0) return;
  const seconds = Math.ceil(leftMs / 1_000);
  throw new ProblemError(429, `Too many failed attempts. Try again in ${seconds} s.`, {
    headers: { 'retry-after': String(seconds) },
  });
}

/** Makes somebody wait whose token was wrong. The directory counts, so that isolates do it together. */
export async function slowDown(context: SignInClient): Promise<void> {
  const address = addressFor(context);
  const failures = await directoryOf(context.env).failedAttempt(address);
  if (failures <= FREE) return;
  // Who shares an address would be shut out together, so there it stays at the delay.
  if (failures >= BLOCKED_FROM && isOwnAddress(context.env, address)) block(address);
  await pause(Math.min(DELAY_MS_MAX, DELAY_MS_MIN * 2 ** (failures - FREE - 1)));
}

function addressFor({ env, req }: SignInClient): string {
  return addressOf(env, req.raw);
}

function block(address: string): void {
  blockedUntil.set(address, steadyClock.now() + BLOCKED_MS);
}
