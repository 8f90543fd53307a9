import { computed, signal } from '@preact/signals';
import type { AdminRole } from '../../src/contract/config/keys.ts';
import { api, whenSignedOut, type Problem } from './api.ts';

interface SignedInUser {
  readonly actor: string;
  readonly role: AdminRole;
}

/** Why the dashboard is disabled, and how to enable it if the server knows. */
export type ClosedReason = Pick<Problem, 'detail' | 'command' | 'afterwards' | 'fault'>;

/**
 * `asking`: unknown yet. `signed_out`: a token is required. `closed`: ADMIN_TOKEN is not set or was rejected.
 * `signed_in`: the role decides what the user may do. `hasEnded` means that the server rejected the session. The page
 * then keeps all input behind a dialog that asks for the token.
 */
type SessionState =
  | { readonly state: 'asking' }
  | { readonly state: 'signed_out'; readonly reason: string | null }
  | ({ readonly state: 'closed' } & ClosedReason)
  | { readonly state: 'signed_in'; readonly user: SignedInUser; readonly hasEnded: boolean };

export const session = signal<SessionState>({ state: 'asking' });

const RANKS: Readonly<Record<AdminRole, number>> = { viewer: 0, operator: 1, admin: 2 };

const rank = computed(() =>
  session.value.state === 'signed_in' ? RANKS[session.value.user.role] : -1,
);

export function may(role: AdminRole): boolean {
  return rank.value >= RANKS[role];
}

whenSignedOut(endSession);

function endSession(): void {
  const before = session.peek();
  if (before.state === 'signed_in') session.value = { ...before, hasEnded: true };
}

/** Checks whether the session is still valid, after an error that does not say so. */
export async function checkSession(): Promise<void> {
  const result = await api('GET /session');
  if (!result.ok && result.status === 401) endSession();
}

/** Fragment of the address that `headgate serve` prints. Browsers never send fragments to servers. */
const TOKEN_FRAGMENT = /^#token=(.+)$/;

/** Removes the token from the address and from the history entry. Returns null if there is none. */
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
 * Loads the user, identified by a cookie or by Cloudflare Access. If there is none, a token in the address signs in.
 * The token never replaces a user, so that a link cannot make people act as someone else.
 */
export async function askSession(): Promise<void> {
  const token = takeToken();
  const result = await api('GET /session');
  if (!result.ok && result.status === 401 && token !== null) {
    const problem = await signIn(token);
    if (problem !== null) session.value = { state: 'signed_out', reason: problem.detail };
    return;
  }
  session.value = result.ok
    ? { state: 'signed_in', user: result.body, hasEnded: false }
    : withoutSession(result.status, result.problem);
}

function withoutSession(
  status: number,
  { detail, command, afterwards, fault }: Problem,
): SessionState {
  if (status === 403) return { state: 'closed', detail, command, afterwards, fault };
  return { state: 'signed_out', reason: status === 401 ? null : detail };
}

/** Signs this browser in. Resolves with null, or with the problem. */
export async function signIn(token: string): Promise<Problem | null> {
  const result = await api('POST /session', { body: { token } });
  if (!result.ok) return result.problem;
  session.value = { state: 'signed_in', user: result.body, hasEnded: false };
  return null;
}

export async function signOut(): Promise<void> {
  await api('DELETE /session');
  session.value = { state: 'signed_out', reason: null };
}
