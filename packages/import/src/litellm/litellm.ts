import * as z from 'zod';
import { modelListSchema } from '../schemas.ts';
import { LITELLM_PARTS_OF_PROVIDERS, litellmProvider } from '../names.ts';
import { quoteName } from '../../../../src/config/field-error.ts';
import { refused, type Converted, ForeignSecrets } from '../groups.ts';
import { type GroupInput, TIER_MAX } from '../members.ts';
import { MadeUpstreams } from '../targets.ts';
import { groupDeployments, type Grouped } from '../model-groups.ts';
import {
  sharedBudget,
  stricterBudget,
  type ConvertedBudget,
  environmentOf,
  resolveValue,
  type Environment,
  entriesOf,
  fieldsOf,
  type UnknownFields,
  ImportReport,
} from './fields.ts';
import { readDeployments, type ReadDeployment } from './deployments.ts';
import { readSettings, type LitellmSettings } from './settings.ts';

const listSchema = z.looseObject({
  model_list: z.array(z.unknown()).min(1).max(1_000),
});

/** Parts of a document that are read in addition to its list. */
const READ_PARTS = new Set([
  'credential_list',
  'environment_variables',
  'general_settings',
  'litellm_settings',
  'router_settings',
]);

/** Parts of LiteLLM without a counterpart. LiteLLM ignores all other parts, which hold anchors. */
const OTHER_PARTS = new Set([
  'assistant_settings',
  'callback_settings',
  ...LITELLM_PARTS_OF_PROVIDERS,
  'files_settings',
  'finetune_settings',
  'guardrails',
  'mcp_servers',
  'mcp_tools',
  'prompts',
  'search_tools',
  'vector_store_registry',
]);

function reportOthers(document: UnknownFields, report: ImportReport): void {
  const names = Object.keys(document);
  const { credential_list: credentials } = document;
  if (credentials !== undefined && credentials !== null && !Array.isArray(credentials)) {
    report.omit('credential_list', 'expected a list');
  }
  const ignored = names.filter((name) => !READ_PARTS.has(name) && !OTHER_PARTS.has(name));
  for (const name of names) {
    if (OTHER_PARTS.has(name)) report.omit(name, 'has no counterpart');
    if (name === 'include') report.omit(name, 'names files, which only `headgate import` reads');
  }
  const unknown = ignored.filter((name) => name !== 'include');
  if (unknown.length > 0) {
    report.notes.add(
      `Ignored fields, which LiteLLM does not have: ${unknown.map(quoteName).join(', ')}.`,
    );
  }
}

/** Converts the deployments of each name to a group with members. */
export function convertModelList(
  document: unknown,
  env: Readonly<Record<string, string | undefined>> = {},
): Converted {
  const parsed = listSchema.safeParse(document);
  if (!parsed.success) return refused(parsed.error, modelListSchema, document);
  const { model_list: list, ...others } = parsed.data;
  const report = new ImportReport();
  const environment = environmentOf(document, env);
  const titles = new Set(
    list.flatMap((entry) => {
      const title = resolveValue(fieldsOf(entry)['model_name'], environment);
      return 'value' in title && typeof title.value === 'string' ? [title.value] : [];
    }),
  );
  const settings = readSettings(others, [...titles], environment, report);
  reportOthers(others, report);
  const secrets = new ForeignSecrets();
  const read = readDeployments(list, {
    environment,
    credentials: credentialsOf(others, environment),
    maxParallel: settings.maxParallel,
    baseOf: basesOf(environmentOf(document), settings),
    goesByTags: settings.goesByTags,
    secrets,
    report,
  });
  const all = inTiers(read, report);
  const unlimited = providersWithoutBudget(settings);
  const deployments = all.filter(({ provider }) => !unlimited.has(provider));
  const made = new MadeUpstreams();
  const grouped = groupDeployments(deployments, settings, made);
  reportSharedLimits(grouped, report);
  const members = budgetsOfMembers(grouped.madeOf, settings, report);
  const groups = grouped.groups.map((group, at) => ({
    ...group,
    members: (group.members ?? []).map((member, index) => {
      const budget = members[at]?.[index];
      if (budget === undefined) return member;
      return { ...member, limits: { ...member.limits, budget_usd: budget } };
    }),
  }));
  return {
    ok: true,
    config: {
      upstreams: made.list,
      groups: [...groups, ...overallGroup(groups, settings, report)],
    },
    notes: [
      ...grouped.notes,
      ...made.list.flatMap(({ id, base_url: base }) =>
        base === undefined ? [] : [`${base} became the upstream \`${id}\`.`],
      ),
      ...secrets.notes,
      ...report.notes,
    ],
    omitted: [...report.omitted(), ...grouped.omitted],
    pathOf: rollbackPath(grouped.madeOf),
  };
}

/** Translates a path back to the list, by the deployments of each group. */
function rollbackPath(groups: readonly (readonly ReadDeployment[])[]): (path: string) => string {
  const fields: Readonly<Record<string, string>> = {
    secret: 'api_key',
    tier: 'order',
    upstream: 'model',
  };
  return (path) => {
    const [, group, member = '0', field] =
      /^groups\[(\d+)\](?:\.members\[(\d+)\](?:\.(\w+))?)?/.exec(path) ?? [];
    const at = groups[Number(group)]?.[Number(member)]?.at;
    if (at === undefined) return path;
    return field === undefined ? at : `${at}.litellm_params.${fields[field] ?? field}`;
  };
}

/**
 * Returns the credentials that deployments use, by name. Variables other than keys are resolved with the deployment.
 */
function credentialsOf(
  document: UnknownFields,
  environment: Environment,
): ReadonlyMap<string, UnknownFields> {
  return new Map(
    entriesOf(document['credential_list']).flatMap((entry) => {
      const { credential_name: named, credential_values: values } = fieldsOf(entry);
      const name = resolveValue(named, environment);
      return 'value' in name && typeof name.value === 'string'
        ? [[name.value, fieldsOf(values)] as const]
        : [];
    }),
  );
}

/** Returns the base URL that a document sets for all deployments of a provider. */
function basesOf(environment: Environment, { openaiBase }: LitellmSettings) {
  return (named: string): string | undefined => {
    const word = named.toUpperCase().replace(/[^A-Z0-9]+/g, '_');
    const set = environment(`${word}_API_BASE`) ?? environment(`${word}_BASE_URL`);
    return set ?? (named === 'openai' ? openaiBase : undefined);
  };
}

/** Returns the providers with a budget that cannot be converted. Their models could cost more than allowed. */
function providersWithoutBudget({ providerBudgets }: LitellmSettings): ReadonlySet<string> {
  return new Set(
    [...providerBudgets].flatMap(([name, { budget }]) => (budget === null ? [idOf(name)] : [])),
  );
}

function idOf(provider: string): string {
  return litellmProvider(provider)?.id ?? provider;
}

/** Limits of a group, and the fields of a deployment that they come from. */
const LIMIT_FIELDS = [
  ['max_concurrency', 'max_parallel_requests'],
  ['rpm', 'rpm'],
  ['tpm', 'tpm'],
] as const;

/** Reports limits of deployments that are members of several groups, because each group counts separately. */
function reportSharedLimits(
  { madeOf, groups }: Grouped<ReadDeployment>,
  report: ImportReport,
): void {
  for (const deployment of new Set(madeOf.flat())) {
    const { at, member: { limits } = {} } = deployment;
    const names = groups.flatMap(({ name }, index) =>
      madeOf[index]?.includes(deployment) === true ? [quoteName(name)] : [],
    );
    const [, field] = LIMIT_FIELDS.find(([limit]) => typeof limits?.[limit] === 'number') ?? [];
    if (field === undefined || names.length < 2) continue;
    const message = `applies in each of the groups ${names.join(', ')} separately, so up to ${names.length} times as many calls may go there`;
    report.omit(`${at}.litellm_params.${field}`, message);
  }
}

/** Returns the budgets of members: their own, and their share of their provider's. */
function budgetsOfMembers(
  madeOf: readonly (readonly ReadDeployment[])[],
  { providerBudgets }: LitellmSettings,
  report: ImportReport,
) {
  const all = madeOf.flat();
  const shares = new Map<ReadDeployment, ConvertedBudget['budget']>();
  const add = (deployment: ReadDeployment, budget: ConvertedBudget['budget']): void => {
    const known = shares.get(deployment);
    shares.set(deployment, known === undefined ? budget : stricterBudget(known, budget));
  };
  for (const deployment of all) {
    if (deployment.budget === null) continue;
    const { budget, note } = deployment.budget;
    const path = `${deployment.at}.litellm_params.max_budget`;
    if (note !== undefined) report.notes.add(`${note} (${path}).`);
    add(deployment, budget);
  }
  for (const [name, { path, budget }] of providerBudgets) {
    if (budget === null) continue;
    const id = idOf(name);
    const places = all.filter(({ provider }) => provider === id).length;
    if (places === 0) {
      report.omit(path, 'names a provider without an imported model');
      continue;
    }
    if (budget.note !== undefined) report.notes.add(`${budget.note} (${path}).`);
    if (places > 1) {
      report.notes.add(
        `${path} is divided among ${places} members, because each counts separately.`,
      );
    }
    const share = sharedBudget(budget.budget, places);
    for (const deployment of new Set(all)) if (deployment.provider === id) add(deployment, share);
  }
  return madeOf.map((group) => group.map((deployment) => shares.get(deployment)));
}

const PATTERNS_MAX = 200;

/** Returns the group for the limits of the whole proxy, over all imported models. */
function overallGroup(
  groups: readonly GroupInput[],
  { overall: { maxConcurrency, budget } }: LitellmSettings,
  report: ImportReport,
): GroupInput[] {
  // Without models, the group would match all other calls of Headgate too.
  if (groups.length === 0 || (maxConcurrency === null && budget === null)) return [];
  if (budget?.note !== undefined) {
    report.notes.add(`${budget.note} (\`litellm_settings.max_budget\`).`);
  }
  const models = groups.flatMap(({ match }) => match?.models ?? []);
  const names = new Set(groups.map(({ name }) => name));
  const name = names.has('all-models') ? 'all-imported-models' : 'all-models';
  report.notes.add(
    `Limits of the whole proxy became the group \`${name}\`, over all imported models.`,
  );
  return [
    {
      name,
      match: models.length > PATTERNS_MAX ? {} : { models },
      limits: {
        max_concurrency: maxConcurrency,
        ...(budget === null ? {} : { budget_usd: budget.budget }),
      },
    },
  ];
}

/**
 * Converts the orders of the deployments of each name to tiers. The lowest order is the first tier. Deployments without
 * an order come after those with one.
 *
 * Source: `_get_order_filtered_deployments` in `litellm/utils.py` of BerriAI/litellm, read on 2026-11-27.
 */
function inTiers(deployments: readonly ReadDeployment[], report: ImportReport): ReadDeployment[] {
  const orders = new Map<string, Set<number>>();
  for (const { title, member } of deployments) {
    const order = member?.tier;
    if (order !== undefined) orders.set(title, (orders.get(title) ?? new Set()).add(order));
  }
  return deployments.map((deployment) => {
    const own = [...(orders.get(deployment.title) ?? [])].toSorted((a, b) => a - b);
    if (own.length === 0) return deployment;
    const { at, member } = deployment;
    const tier = (member?.tier === undefined ? own.length : own.indexOf(member.tier)) + 1;
    if (tier > TIER_MAX) {
      const message = `has no order of its own after tier ${TIER_MAX}, the maximum`;
      report.omitField(`${at}.litellm_params.order`, 'order', message);
    }
    return { ...deployment, member: { ...member, tier: Math.min(TIER_MAX, tier) } };
  });
}
