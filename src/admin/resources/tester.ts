import * as z from 'zod';
import { configVersion } from '../shapes.ts';
import { invalid, route } from '../route.ts';
import { currentSnapshot } from '../change.ts';
import { cancelsRun } from '../../upstream/operation/runs.ts';
import { classify } from '../../upstream/operation/operation.ts';
import { readSecret, fingerprint } from '../../runtime/secrets.ts';
import { resolveUpstreams } from '../../routing/upstreams.ts';
import {
  GROUPS_PER_CALL_MAX,
  type Placement,
  type Routes,
  compileRoutes,
} from '../../routing/placement.ts';
import { laneOf, hashedPlacements } from '../../routing/placed-call.ts';
import { kindOfLimits } from '../../routing/implied-groups.ts';
import {
  closedRoute,
  entryAt,
  forbiddenFor,
  refusedKey,
  requiresKey,
} from '../../routing/key-access.ts';
import { chooseUpstream } from '../../routing/upstreams.ts';
import { BUILT_IN_UPSTREAMS } from '../../providers/catalog.ts';
import type { Env } from '../../env.ts';
import { LANES } from '../../core/words/ticket.ts';
import type { ConfigSnapshot } from '../../contract/rpc/directory-rpc.ts';
import { type ErrorReply, REASONS } from '../../contract/reasons.ts';
import { callerGroupSchema } from '../../contract/caller-api.ts';
import { METHODS, DIALECTS } from '../../contract/http.ts';
import type { Upstream } from '../../contract/config/upstream.ts';
import { groupSchema } from '../../contract/config/group.ts';
import type { GatewayKeyConfig } from '../../contract/config/config.ts';
import { ticked } from '../../config/field-error.ts';
import { unknownOperation } from '../../config/check/upstreams.ts';

const placementSchema = z.object({
  group: z.string().describe('Name of the group.'),
  kind: callerGroupSchema.shape.kind,
  partition: z
    .string()
    .nullable()
    .describe(
      'Partition, as in the name of its pool. In a jurisdiction, each value is hashed. null if the group is not split.',
    ),
  lane: z.enum(LANES).describe('Lane that the call would have there.'),
  is_of_provider: z
    .boolean()
    .describe(
      'Whether the group matches models, upstreams or base URLs, and not only keys or operations.',
    ),
  limits: groupSchema.shape.limits
    .nullable()
    .describe('Configured limits. null for an automatic group, which has `assumed`.'),
  assumed: z
    .object({
      max_concurrency: z.int().meta({ description: 'Slots.', unit: 'slots' }),
      source: z
        .enum(['built_in', 'unknown'])
        .describe('Source: the table of known limits, or the default for all others.'),
    })
    .nullable()
    .describe('Limit of an automatic group. null if the group is configured.'),
});

export const testedSchema = z.object({
  version: configVersion,
  upstream: z
    .object({
      id: z.string().describe('Id of the upstream.'),
      base_url: z.string().describe('Base URL.'),
      dialect: z.enum(DIALECTS).describe('API shape.'),
    })
    .nullable()
    .describe('Upstream of the call. null if none was found.'),
  model: z.string().nullable().describe('Model that groups match. null if there is none.'),
  chosen_by: z
    .enum(['upstream', 'model', 'default'])
    .nullable()
    .describe('How the upstream was chosen. null if none was found.'),
  operation: z
    .string()
    .nullable()
    .describe('Operation, by the path if there is one. null if no upstream was found.'),
  takes_slot: z
    .boolean()
    .nullable()
    .describe('Whether it takes slots. null if no upstream was found.'),
  credential: z
    .enum(['operator', 'caller', 'none'])
    .nullable()
    .describe(
      'Whose key the upstream would receive. `none` means that it needs no key. null if no upstream was found.',
    ),
  groups: z
    .array(placementSchema)
    .describe('Groups of the call, in the order in which their slots are acquired.'),
  refusal: z
    .object({
      reason: z.string().describe('Reason, as in `headgate-reason`.'),
      status: z.int().describe('HTTP status.'),
      message: z.string().describe('Message for people.'),
    })
    .nullable()
    .describe('Why the call would be rejected before it reaches a group. null if it would not.'),
});

export const testedCallSchema = z.strictObject({
  model: z
    .string()
    .min(1)
    .max(300)
    .nullable()
    .default(null)
    .describe(
      'Model as sent by the caller. `anthropic/claude-…` also names the upstream. null if the call names none.',
    ),
  upstream: z
    .string()
    .min(1)
    .max(100)
    .nullable()
    .default(null)
    .describe(
      'Id of the upstream, as in the path or in `headgate-upstream`. null means that the upstream is chosen as for `/v1/*`.',
    ),
  key: z
    .string()
    .min(1)
    .max(100)
    .nullable()
    .default(null)
    .describe(
      'Id of a gateway key, or fingerprint of a provider key. Never the key itself. null means no key.',
    ),
  operation: z
    .string()
    .min(1)
    .max(100)
    .default('chat')
    .describe('Operation, as in `match.operations`, if there is no path.'),
  path: z
    .string()
    .max(2_000)
    .regex(/^\/[^?#]*$/, 'expected a path below the base URL, such as /v1/custom/run')
    .nullable()
    .default(null)
    .describe(
      'Path below the base URL of its upstream, such as `/v1/custom/run`. null means a path of the operation that no `match.paths` matches.',
    ),
  method: z.enum(METHODS).default('POST').describe('Method of the request.'),
  shape: z
    .enum(['openai', 'anthropic'])
    .default('openai')
    .describe('API shape of the request at `/v1/*`.'),
  lane: z
    .enum(LANES)
    .nullable()
    .default(null)
    .describe('Lane in `headgate-lane`. null if there is none.'),
  headers: z
    .record(z.string().max(100), z.string().max(1_000))
    .default({})
    .describe('Request headers by which groups are split.'),
});

type TestedCall = z.output<typeof testedCallSchema>;

const NOTHING = {
  upstream: null,
  model: null,
  chosen_by: null,
  operation: null,
  takes_slot: null,
  credential: null,
  groups: [],
} as const;

interface ChosenUpstream {
  readonly upstream: Upstream;
  readonly model: string | null;
  readonly by: 'upstream' | 'model' | 'default';
}

export const TESTER_ROUTES = {
  testCall: route('POST /tester', {
    tag: 'configuration',
    summary: 'Find the upstream and groups of a call',
    role: 'viewer',
    body: testedCallSchema,
    answers: { 200: testedSchema },
  }).servedBy(async ({ context, body: call }) => {
    const errors = call.path === null ? unknownOperation(call.operation, 'operation') : [];
    if (errors.length > 0) throw invalid(errors);
    const snapshot = await currentSnapshot(context.env);
    const upstreams = resolveUpstreams(snapshot.config, BUILT_IN_UPSTREAMS);
    const routes = compileRoutes(snapshot.config, upstreams);
    const chosen = choose(call, upstreams, routes, snapshot.config.default_upstream);
    const body =
      'reason' in chosen
        ? { ...NOTHING, refusal: wire(chosen) }
        : await tested(call, chosen, routes, snapshot, context.env);
    return { status: 200, body: { version: snapshot.version, ...body } };
  }),
};

function choose(
  { upstream: header, model, shape, key }: TestedCall,
  upstreams: ReadonlyMap<string, Upstream>,
  routes: Routes,
  byDefault: string | null,
): ChosenUpstream | ErrorReply {
  const keyIds = keyIdsOf(key);
  const asked: Parameters<typeof chooseUpstream>[0] = {
    header,
    model,
    shape,
    upstreamOfMember: (named, isServedBy) =>
      routes.upstreamOfMember({ model: named, keyIds, isServedBy }),
  };
  const choice = chooseUpstream(asked, upstreams, byDefault);
  switch (choice.kind) {
    case 'found': {
      const { upstream, prefix } = choice;
      const own = chooseUpstream(asked, upstreams, null);
      const by = header !== null ? 'upstream' : own.kind === 'found' ? 'model' : 'default';
      return { upstream, model: model?.slice(prefix.length) ?? null, by };
    }
    case 'ambiguous':
      return {
        reason: 'model_ambiguous',
        message: `Several upstreams serve this model: ${ticked(choice.upstreams.map(({ id }) => id))}. Name one of them.`,
      };
    case 'unknown':
      return {
        reason: header === null && model !== null ? 'model_unknown' : 'upstream_unknown',
        message: `No upstream was found. Tried: ${choice.tried.join('; ')}.`,
      };
  }
}

async function tested(
  call: TestedCall,
  { upstream, model, by }: ChosenUpstream,
  routes: Routes,
  { config, fingerprintKey }: ConfigSnapshot,
  env: Env,
) {
  const key = config.keys.find(({ id }) => id === call.key) ?? null;
  const secret = upstream.secret === null ? null : readSecret(env, upstream.secret);
  const injected = secret === null ? null : await fingerprint(fingerprintKey, secret);
  const given = key === null ? call.key : null;
  const asked = askedFor(call, upstream, routes);
  const placed = routes.place({
    upstream,
    model,
    ...asked.at,
    caller: call.key ?? 'anonymous',
    keyIds: keyIdsOf(call.key),
    keyFingerprint: upstream.isKeyless ? null : (injected ?? given),
    isOwnKey: injected === null && given !== null,
    // The account can only be determined from the key itself, which the tester does not receive.
    account: null,
    header: (name) => call.headers[name] ?? null,
  });
  const taken = asked.takesSlot ? placed : [];
  const placements = await hashedPlacements(taken, env, fingerprintKey);
  const refusal =
    (key === null
      ? keyRefusal(call, requiresKey(config, upstream), upstream)
      : refusedKey(key, null)) ??
    asked.closedTo(key) ??
    (key === null ? null : forbiddenFor(key, placements)) ??
    tooMany(placements);
  const keyLanes = { byDefault: key?.lane_default ?? null, best: key?.lane_max ?? null };
  return {
    upstream: { id: upstream.id, base_url: upstream.baseUrl, dialect: upstream.dialect },
    model,
    chosen_by: by,
    operation: asked.at.operation,
    takes_slot: asked.takesSlot,
    credential: credentialOf(upstream),
    groups: placements.map((placement) =>
      shown(placement, laneOf({ lane: call.lane, keyLanes }, placement)),
    ),
    refusal: refusal === null ? null : wire(refusal),
  };
}

/** Returns the operation of a call: that of its path, or one that takes a slot. */
function askedFor(call: TestedCall, upstream: Upstream, routes: Routes) {
  const { method, path } = call;
  if (path === null) {
    const at = { operation: call.operation, method, path };
    return { at, takesSlot: true, closedTo: () => null };
  }
  const query = new URLSearchParams();
  const operation = classify(method, path, query, upstream.dialect);
  const at = { operation: operation.name, method, path };
  const named = cancelsRun(path)
    ? 'no'
    : routes.namedPath({ upstream, keyIds: keyIdsOf(call.key), ...at });
  const isNamed = named === 'in all readings';
  const asked = { upstream, path, operation: isNamed ? { isNamed } : {} } as const;
  const entry = entryAt(upstream, upstream.secret, null);
  const request = { method, headers: new Headers() };
  const closedTo = (key: GatewayKeyConfig | null): ErrorReply | null =>
    entry === null ? null : closedRoute(key, asked, { request, query }, entry);
  return { at, takesSlot: operation.limited || named !== 'no', closedTo };
}

function keyIdsOf(key: string | null): string[] {
  return key === null ? [] : [key];
}

function credentialOf({ isKeyless, secret }: Upstream): 'none' | 'caller' | 'operator' {
  if (isKeyless) return 'none';
  return secret === null ? 'caller' : 'operator';
}

function keyRefusal(call: TestedCall, isWanted: boolean, upstream: Upstream): ErrorReply | null {
  if (!isWanted && upstream.secret === null) return null;
  const message =
    call.key === null
      ? 'The call needs a gateway key. Enter the id of one.'
      : `The call needs a gateway key, and \`${call.key}\` is not the id of one.`;
  return { reason: 'key_missing', message };
}

function tooMany(placements: readonly Placement[]): ErrorReply | null {
  if (placements.length <= GROUPS_PER_CALL_MAX) return null;
  const names = ticked(placements.map(({ group }) => group));
  const message = `This call matches ${placements.length} groups (${names}). The maximum is ${GROUPS_PER_CALL_MAX}.`;
  return { reason: 'too_many_groups', message };
}

function shown(placement: Placement, lane: ReturnType<typeof laneOf>) {
  const { group, partition, config, assumed, isOfProvider } = placement;
  const kind = config === null ? 'automatic' : (kindOfLimits(group) ?? 'configured');
  return {
    group,
    kind,
    partition,
    lane,
    is_of_provider: isOfProvider,
    limits: config?.limits ?? null,
    assumed: assumed && { max_concurrency: assumed.slotsMax, source: assumed.source },
  } as const;
}

function wire({ reason, message }: ErrorReply) {
  return { reason, status: REASONS[reason].status, message };
}
