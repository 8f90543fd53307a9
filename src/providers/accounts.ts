import type { Upstream } from '../contract/config/upstream.ts';
import { claimAt, claimsOf } from '../upstream/account/token-claims.ts';
import { providerOf, PROVIDERS } from './index.ts';
import { GATEWAYS } from './steering.ts';

/** How the account of a key is determined. */
export type AccountSign =
  /** The key names it. */
  | { readonly by: 'claim'; readonly account: string }
  /** The upstream names it in its responses. */
  | { readonly by: 'answer'; readonly header: string }
  /** The call names it, if the operator trusts the header. */
  | { readonly by: 'header'; readonly header: string };

/**
 * Returns how the account of a key is determined at an upstream, from the operator's configuration or from the
 * provider. Returns null if each key counts as an account of its own.
 */
export function accountSignOf(upstream: Upstream, key: string): AccountSign | null {
  const { accountBy } = upstream;
  if (accountBy !== 'auto') return configuredSign(accountBy, key);
  if (!upstream.keyNamesAccount) return null;
  const { claims, answers } = providerOf(upstream)?.account ?? {};
  const account = claims === undefined ? null : accountIn(key, claims);
  if (account !== null) return { by: 'claim', account };
  if (answers === undefined || !key.startsWith(answers.keyPrefix)) return null;
  return { by: 'answer', header: answers.header };
}

function configuredSign(accountBy: Upstream['accountBy'], key: string): AccountSign | null {
  const at = accountBy.indexOf(':');
  const name = accountBy.slice(at + 1);
  switch (accountBy.slice(0, at)) {
    case 'claim': {
      const account = accountIn(key, [[name]]);
      return account === null ? null : { by: 'claim', account };
    }
    case 'answer':
      return { by: 'answer', header: name };
    case 'header':
      return { by: 'header', header: name };
    default:
      return null;
  }
}

/** Reads the account from the claims of a token. Returns null for other keys. */
function accountIn(key: string, paths: readonly (readonly string[])[]): string | null {
  const claims = claimsOf(key);
  if (claims === null) return null;
  const values = paths.map((path) => claimAt(claims, path));
  return values[0] === null ? null : JSON.stringify(values);
}

const SELECTORS = PROVIDERS.flatMap(({ accountSelectors }) => accountSelectors ?? []);

const ALL_STEERING = [...GATEWAYS, ...PROVIDERS.flatMap(({ steering }) => steering ?? [])];

/** Endings of names that select an account at unknown providers. */
const SELECTS =
  '(?:^|-)(?:org|organi[sz]ation|project|workspace|account|billing|bill-to|subscription)(?:-?(?:ids?|uuid|key|name|number|slug|to))?$';

const STARTS = ALL_STEERING.flatMap(({ starts = [] }) => starts);

/**
 * The names that select an account at any provider, or control any gateway, because an upstream may be any of them.
 * `pattern` matches names in lower case with dashes.
 */
export const ACCOUNT_SELECTORS = {
  headers: new Set([
    ...SELECTORS.flatMap(({ headers }) => headers),
    ...ALL_STEERING.flatMap(({ headers = [] }) => headers),
  ]),
  parameters: new Set(SELECTORS.flatMap(({ parameters = [] }) => parameters)),
  pattern: new RegExp(`^(?:x-)?(?:${STARTS.join('|')})|${SELECTS}`),
} as const;
