import type { Dialect } from '../../../../src/contract/http.ts';
import { PORTKEY_ADDRESSES, PORTKEY_CLOUD_FIELDS, PORTKEY_SIGN_INS } from '../names.ts';
import { providerNamed } from '../../../../src/providers/catalog.ts';
import { isPrivateHost } from '../../../../src/runtime/origin.ts';
import { below, quoteName, type FieldError } from '../../../../src/config/field-error.ts';
import { providerIdOf, type ForeignSecrets } from '../groups.ts';
import type { Deployment } from '../members.ts';
import { addressProblem, placeAt, placeNamed, type ForeignTarget } from '../targets.ts';
import { isKeyLike, quoteNoKey } from '../../../../src/config/own-config.ts';
import type { Leaf, PortkeyNode } from './tree.ts';

export interface PortkeyParts {
  readonly secrets: ForeignSecrets;
  readonly notes: Set<string>;
  readonly omitted: FieldError[];
}

/** Fields of a target that are read, or that have no meaning outside Portkey. */
const READ = new Set([
  ...(
    'name id strategy targets provider virtual_key api_key custom_host weight override_params retry request_timeout ' +
    'metadata strict_open_ai_compliance passthrough'
  ).split(' '),
  ...PORTKEY_CLOUD_FIELDS,
]);

const NO_LOOK = 'Headgate does not inspect prompts and responses';
const NO_CHANGE = 'Headgate changes only the model in a body';
const PAYER =
  'is a header that decides who pays, and members send no such header. Use a key of that account';

/** Why fields of a target are not converted. Other fields have no counterpart. */
const WHY_NOT: ReadonlyMap<string, string> = new Map(
  Object.entries({
    cache: 'Headgate stores no responses, so each call is paid',
    input_guardrails: NO_LOOK,
    output_guardrails: NO_LOOK,
    default_input_guardrails: NO_LOOK,
    default_output_guardrails: NO_LOOK,
    before_request_hooks: NO_LOOK,
    after_request_hooks: NO_LOOK,
    default_params: NO_CHANGE,
    drop_params: NO_CHANGE,
    openai_organization: PAYER,
    openai_project: PAYER,
    forward_headers:
      'headers other than credentials are always forwarded, and calls at members use the key of the member',
    api_version:
      'callers choose it with the parameter api-version, and the routes below /openai/v1 need none',
    azure_api_version:
      'callers choose it with the parameter api-version, and the routes below /openai/v1 need none',
  }),
);

/** Converts a target to a deployment. null if it is omitted. */
export function deploymentOf(
  { at, node }: Leaf,
  tier: number | null,
  to: PortkeyParts,
): Deployment | null {
  const named = modelOf(node);
  const slug = named.slug ?? slugOf(node);
  const found = placeOf(node, slug);
  if ('path' in found) {
    to.omitted.push({ path: below(at, found.path), message: found.message });
    return null;
  }
  const { place } = found;
  listUnread(at, node, to);
  if (slug !== null) {
    to.notes.add(
      `${quoteSlug(slug)} is stored at Portkey, and its name suggests ${place.id}. Check that ${at || 'the config'} goes there.`,
    );
  }
  return {
    at: at || 'provider',
    place,
    secret: secretOf(at || 'the config', node, slug, place, to),
    model: named.model,
    member: tier === null ? {} : { tier },
  };
}

interface TargetModel {
  /** Model there. null means the requested one. */
  readonly model: string | null;
  /** Model that callers request, if the target names one. */
  readonly requested: string | null;
  /** Slug of the provider before the model, as in `@slug/model`. */
  readonly slug: string | null;
}

/** Returns the model of a target: the one that it sets in bodies, or the deployment that it calls. */
export function modelOf(node: PortkeyNode): TargetModel {
  const written = node.override_params?.model;
  const [, slug = null, model = written ?? null] = /^@([^/]+)\/(.+)$/.exec(written ?? '') ?? [];
  const { dialect } = providerNamed(providerIdOf(node.provider ?? '', 'portkey')) ?? {};
  if (dialect !== 'azure' || slug !== null) return { model, requested: model, slug };
  const deployment = [node['azure_deployment_id'], node['deployment_id']].find(isText) ?? null;
  const known = isText(node['azure_model_name']) ? node['azure_model_name'] : deployment;
  return { model: deployment ?? model, requested: model ?? known, slug };
}

function slugOf({ provider, virtual_key: key }: PortkeyNode): string | null {
  if (provider?.startsWith('@') === true) return provider.slice(1);
  return provider === undefined ? (key ?? null) : null;
}

type FoundPlace = { readonly place: ForeignTarget } | FieldError;

/** Returns where the calls of a target go. A `FieldError` explains an unknown address or a temporary key. */
function placeOf(node: PortkeyNode, slug: string | null): FoundPlace {
  if (node['passthrough'] === true) {
    return {
      path: 'passthrough',
      message:
        'each call chooses the provider. In Headgate, callers choose it by base URL or model',
    };
  }
  const id = slug === null ? providerIdOf(node.provider ?? '', 'portkey') : providerOfSlug(slug);
  const temporary = withoutKey(node, id);
  if (temporary !== null) return temporary;
  const address = addressOf(node, id);
  if (address !== null) {
    const problem =
      address.base === ''
        ? 'expected letters, digits and dashes, because it becomes a part of an address'
        : addressProblem(address.base);
    if (problem !== null) return { path: address.field, message: problem };
    const place = placeAt(address.base, spokenBy(id));
    const isLocal = node.api_key === undefined && isPrivateHost(new URL(address.base).hostname);
    return { place: { ...place, isLocal } };
  }
  if (slug !== null) {
    const place = id === null ? null : placeNamed(id, 'portkey');
    if (place !== null) return { place };
    return {
      path:
        node.provider === undefined
          ? node.virtual_key === undefined
            ? 'override_params.model'
            : 'virtual_key'
          : 'provider',
      message: `only Portkey can resolve ${quoteSlug(slug)}. Replace it with \`provider\` and \`api_key\`, and set \`custom_host\` for a host of your own`,
    };
  }
  if (node.provider === undefined) {
    return { path: 'provider', message: 'is missing, so the target of the calls is unknown' };
  }
  const place = placeNamed(node.provider, 'portkey');
  return place === null
    ? {
        path: 'provider',
        message: `${quoteNoKey(node.provider)} has no known address. Set \`custom_host\``,
      }
    : { place };
}

/** Finds targets that authenticate with something temporary, or with something that Headgate cannot create. */
function withoutKey(node: PortkeyNode, id: string | null): FieldError | null {
  const signIn = PORTKEY_SIGN_INS.find(({ provider }) => provider === id);
  if (signIn === undefined) return null;
  const { fields, message } = signIn;
  if (fields.length === 0) return { path: 'provider', message };
  const path = fields.find((field) => isText(node[field]) && node[field] !== 'default');
  return path === undefined ? null : { path, message };
}

/** Returns the address in a target, and its field. */
function addressOf(
  node: PortkeyNode,
  id: string | null,
): { readonly base: string; readonly field: string } | null {
  if (node.custom_host !== undefined) return { base: node.custom_host, field: 'custom_host' };
  for (const { provider, field, address } of PORTKEY_ADDRESSES) {
    const written = node[field];
    if (provider !== id || !isText(written)) continue;
    return { base: address === null ? written : inHost(written, address), field };
  }
  return null;
}

/** Inserts a name into an address. Empty for a name that would change the host. */
function inHost(name: string, address: string): string {
  return /^[\w-]+$/.test(name) ? address.replace('*', name) : '';
}

/** Returns the dialect of a provider at any address. */
function spokenBy(id: string | null): Dialect | undefined {
  const provider = id === null ? null : providerNamed(id);
  return provider === null ? undefined : (provider.dialect ?? 'openai');
}

/** Returns the provider in the name of a stored one. null if there is none, or if there are several. */
function providerOfSlug(slug: string): string | null {
  const words = slug.toLowerCase().split(/[^a-z0-9]+/);
  const found = new Set<string>();
  for (let at = 0; at < words.length; at += 1) {
    // The longest name applies: `azure-openai` is not also `openai`.
    for (let end = Math.min(words.length, at + 3); end > at; end -= 1) {
      const id = providerIdOf(words.slice(at, end).join('-'), 'portkey');
      if (providerNamed(id) === null) continue;
      found.add(id);
      at = end - 1;
      break;
    }
  }
  const [only] = found;
  return found.size === 1 ? (only ?? null) : null;
}

function secretOf(
  at: string,
  node: PortkeyNode,
  slug: string | null,
  place: ForeignTarget,
  { secrets, notes }: PortkeyParts,
): string | null {
  if (isText(node['aws_access_key_id']) || isText(node['aws_role_arn'])) {
    notes.add(
      `${at} is signed with AWS keys at Portkey. Headgate uses an API key of Bedrock, so create one.`,
    );
    return secrets.ofVariable('AWS_BEARER_TOKEN_BEDROCK');
  }
  if (node.api_key !== undefined) return secrets.ofKey(node.api_key, place.id, `${at}.api_key`);
  if (slug !== null) {
    const owner = isKeyLike(slug) ? `${place.id}_API_KEY` : slug;
    return secrets.ofOther(`slug ${slug}`, owner, `${quoteSlug(slug)} at Portkey`);
  }
  if (place.isLocal) return null;
  notes.add(
    `${at} has no key, because callers send their own key to Portkey. A member needs a key of yours.`,
  );
  return secrets.ofOther(`place ${place.id}`, `${place.id}_API_KEY`, place.id);
}

export function listUnread(at: string, node: PortkeyNode, { omitted }: PortkeyParts): void {
  for (const [name, value] of Object.entries(node)) {
    if (value === undefined || value === null || READ.has(name)) continue;
    omitted.push({ path: below(at, name), message: WHY_NOT.get(name) ?? 'has no counterpart' });
  }
  for (const name of Object.keys(node.override_params ?? {})) {
    if (name !== 'model') {
      omitted.push({ path: below(at, `override_params.${name}`), message: NO_CHANGE });
    }
  }
}

/** Quotes the slug of a stored key, unless it looks like a key itself. */
function quoteSlug(slug: string): string {
  return isKeyLike(slug) ? 'A key' : quoteName(`@${slug}`);
}

function isText(value: unknown): value is string {
  return typeof value === 'string' && value !== '';
}
