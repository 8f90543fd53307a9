import { computed, signal } from '@preact/signals';
import type { AdminRole } from '../../src/contract/config/keys.ts';
import { api, whenSignedOut, type Problem } from './api.ts';

/** User of the page. */
interface SignedInUser {
  readonly actor: string;
  readonly role: AdminRole;
}

/** Why the dashboard is closed, and how to open it if the server says so. */
export type ClosedReason = Pick<Problem, 'detail' | 'command' | 'afterwards' | 'fault'>;

/**
 * `asking`: not known yet. `signed_out`: a token is needed. `closed`: ADMIN_TOKEN is not set or refused.
 * `signed_in`: everything that the role allows; `hasEnded`: the server no longer knows the
 * session, so the page waits behind a question for the token, with everything that was typed.
 */
type SessionState =
  | { readonly state: 'asking' }
  | { readonly state: 'signed_out'; readonly reason: string | null }
  | ({ readonly state: 'closed' } & ClosedReason)
  | { readonly state: 'signed_in'; readonly who: SignedInUser; readonly hasEnded: boolean };

/** Session of the page's user, as far as is known. */
export const session = signal<SessionState>({ state: 'asking' });

const RANKS: Readonly<Record<AdminRole, number>> = { viewer: 0, operator: 1, admin: 2 };

const rank = computed(() =>
  session.value.state === 'signed_in' ? RANKS[session.value.who.role] : -1,
);

/** Whether whoever uses the page may do what needs this role. */
export function may(role: AdminRole): boolean {
  return rank.value >= RANKS[role];
}

whenSignedOut(endSession);

function endSession(): void {
  const before = session.peek();
  if (before.state === 'signed_in') session.value = { ...before, hasEnded: true };
}

/** Asks whether the session is still known, where an answer did not tell. */
export async function checkSession(): Promise<void> {
  const result = await api('getSession');
  if (!result.ok && result.status === 401) endSession();
}

/** Fragment of the address that `headgate serve` prints. Browsers send it to no server. */
const TOKEN_FRAGMENT = /^#token=(.+)$/;

/** Takes the token out of the address, and out of the entry of the history. Null: there is none. */
function takeToken(): string | null {
  const [, token] = TOKEN_FRAGMENT.exec(location.hash) ?? [];
  if (token === undefined) return null;
  history.replaceState(history.state, '', location.pathname + location.search);
  try {
    return decodeURIComponent(token);
  } catch {
    return token;
  }
}

/**
 * Finds the user of the page: an earlier cookie, or Cloudflare Access, may have identified one. If there is none, a token in
 * the address signs in. It never replaces a user, so that a link cannot make anyone act as someone else.
 */
export async function askSession(): Promise<void> {
  const token = takeToken();
  const result = await api('getSession');
  if (!result.ok && result.status === 401 && token !== null) {
    const problem = await signIn(token);
    if (problem !== null) session.value = { state: 'signed_out', reason: problem.detail };
    return;
  }
  session.value = result.ok
    ? { state: 'signed_in', who: result.body, hasEnded: false }
    : withoutSession(result.status, result.problem);
}

function withoutSession(
  status: number,
  { detail, command, afterwards, fault }: Problem,
): SessionState {
  if (status === 403) return { state: 'closed', detail, command, afterwards, fault };
  return { state: 'signed_out', reason: status === 401 ? null : detail };
}

/** Signs this browser in. Resolves with what was wrong, or null. */
export async function signIn(token: string): Promise<Problem | null> {
  const result = await api('signIn', { body: { token } });
  if (!result.ok) return result.problem;
  session.value = { state: 'signed_in', who: result.body, hasEnded: false };
  return null;
}

/** Takes the cookie back. */
export async function signOut(): Promise<void> {
  await api('signOut');
  session.value = { state: 'signed_out', reason: null };
}
