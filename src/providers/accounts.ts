import type { Upstream } from '../contract/config/upstream.ts';
import { claimAt, claimsOf } from '../upstream/transfer/tokens.ts';
import type { Steering } from './provider.ts';
import { providerOf, PROVIDERS } from './catalog.ts';

/** Gateways that are not providers but may be behind an upstream. Prefixes are without `x-`. */
export const GATEWAYS: readonly Steering[] = [
  {
    starts: ['helicone-'],
    source: 'https://docs.helicone.ai/helicone-headers/header-directory',
    date: '2026-11-20',
  },
  {
    starts: ['portkey-'],
    source: 'https://portkey.ai/docs/api-reference/inference-api/headers',
    date: '2026-11-20',
  },
  {
    starts: ['litellm-'],
    source: 'https://docs.litellm.ai/docs/proxy/request_headers',
    date: '2026-11-20',
  },
  {
    starts: ['cf-aig-'],
    source: 'https://developers.cloudflare.com/ai-gateway/configuration/',
    date: '2026-11-20',
  },
  { starts: ['requesty-'], source: 'https://docs.requesty.ai', date: '2026-11-20' },
  { starts: ['bt-'], source: 'https://www.braintrust.dev/docs/guides/proxy', date: '2026-11-20' },
  { starts: ['bf-'], source: 'https://docs.getbifrost.ai', date: '2026-11-20' },
  {
    starts: ['ai-eg-', 'envoy-'],
    source: 'https://aigateway.envoyproxy.io/docs/',
    date: '2026-11-20',
  },
  // Endpoint and model at Kubernetes inference gateways, and at AWS SageMaker behind a signing proxy.
  {
    starts: ['gateway-'],
    source: 'https://gateway-api-inference-extension.sigs.k8s.io/',
    date: '2026-11-26',
  },
  {
    starts: ['amzn-sagemaker-'],
    source:
      'https://docs.aws.amazon.com/sagemaker/latest/APIReference/API_runtime_InvokeEndpoint.html',
    date: '2026-11-26',
  },
  { starts: ['higress-', 'mse-'], source: 'https://higress.ai/en/docs/', date: '2026-11-26' },
  {
    starts: ['aibrix-'],
    headers: ['routing-strategy', 'target-pod', 'external-filter'],
    source: 'https://aibrix.readthedocs.io/latest/features/gateway-plugins.html',
    date: '2026-11-26',
  },
  {
    starts: ['smg-', 'sglang-'],
    source: 'https://docs.sglang.ai/advanced_features/router.html',
    date: '2026-11-26',
  },
  { starts: ['tfy-'], source: 'https://docs.truefoundry.com/gateway', date: '2026-11-20' },
  { starts: ['kong-'], source: 'https://docs.konghq.com/gateway/latest/', date: '2026-11-20' },
  {
    starts: ['keywordsai-', 'data-keywordsai-'],
    source: 'https://docs.keywordsai.co',
    date: '2026-11-20',
  },
  {
    starts: ['ocp-apim-'],
    source: 'https://learn.microsoft.com/azure/api-management/api-management-subscriptions',
    date: '2026-11-20',
  },
  // Symfony, Zend and IIS route by these instead of the checked URL.
  {
    headers: [
      'x-original-url',
      'x-rewrite-url',
      'x-original-uri',
      'x-override-url',
      'x-host',
      'x-original-host',
      'x-http-host-override',
    ],
    source:
      'https://symfony.com/blog/cve-2018-14773-remove-support-for-legacy-and-risky-http-headers',
    date: '2026-11-20',
  },
  // The address that a gateway calls next.
  {
    headers: [
      'api-base',
      'base-url',
      'target-url',
      'x-api-base',
      'x-base-url',
      'x-target-url',
      'x-upstream-url',
    ],
    source: 'https://docs.litellm.ai/docs/proxy/request_headers',
    date: '2026-11-20',
  },
  {
    headers: ['azureml-model-deployment'],
    source:
      'https://learn.microsoft.com/azure/machine-learning/how-to-safely-rollout-online-endpoints',
    date: '2026-11-20',
  },
];

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
