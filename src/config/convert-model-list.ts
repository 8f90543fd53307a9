// Step 2, of LiteLLM's lists of deployments. check-config.ts lists all steps.

import * as z from 'zod';
import type { ConfigInput } from '../contract/config/config.ts';
import { modelListSchema } from '../contract/config/foreign-schemas.ts';
import { litellmProvider } from '../providers/litellm-names.ts';
import { quoteName } from './field-error.ts';
import { refused, type Converted } from './foreign-groups.ts';
import type { ListedDeployment } from './listed-deployment.ts';
import { groupDeployments, type Grouped } from './model-groups.ts';
import { sharedBudget, stricterBudget, type Budget } from './litellm/budgets.ts';
import { environmentOf, resolveValue, type Environment } from './litellm/environment.ts';
import { entriesOf, fieldsOf, type Fields } from './litellm/fields.ts';
import { ImportReport } from './litellm/import-report.ts';
import { readDeployments, type ReadDeployment } from './litellm/read-deployments.ts';
import { readSettings, type LitellmSettings } from './litellm/settings.ts';

type Group = NonNullable<ConfigInput['groups']>[number];

const listSchema = z.looseObject({
  model_list: z.array(z.unknown()).min(1).max(1_000),
});

/** Parts of a document that are read beside its list. */
const READ_PARTS = new Set([
  'credential_list',
  'environment_variables',
  'general_settings',
  'litellm_settings',
  'router_settings',
]);

/** Parts that LiteLLM reads, and that have no counterpart. It ignores all others, which hold anchors. */
const OTHER_PARTS = new Set([
  'callback_settings',
  'files_settings',
  'finetune_settings',
  'guardrails',
  'mcp_servers',
  'mcp_tools',
  'prompts',
  'search_tools',
  'vector_store_registry',
]);

/** Reports the parts of a document that are not read. */
function reportOthers(document: Fields, report: ImportReport): void {
  const names = Object.keys(document);
  const { credential_list: credentials } = document;
  if (credentials !== undefined && credentials !== null && !Array.isArray(credentials)) {
    report.omit('credential_list', 'expected a list');
  }
  const ignored = names.filter((name) => !READ_PARTS.has(name) && !OTHER_PARTS.has(name));
  for (const name of names) {
    if (OTHER_PARTS.has(name)) report.omit(name, 'has no counterpart');
    if (name === 'include') report.omit(name, 'names files, which only headgate import reads');
  }
  const unknown = ignored.filter((name) => name !== 'include');
  if (unknown.length > 0) {
    report.notes.add(
      `Ignored, because LiteLLM knows no such fields: ${unknown.map(quoteName).join(', ')}.`,
    );
  }
}

/** Turns the deployments of one name into a group with them as its members. */
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
    list.map((entry) => fieldsOf(entry)['model_name']).filter((title) => typeof title === 'string'),
  );
  const settings = readSettings(others, [...titles], environment, report);
  reportOthers(others, report);
  const all = readDeployments(list, {
    environment,
    credentials: credentialsOf(others, environment),
    maxParallel: settings.maxParallel,
    baseOf: basesOf(environmentOf(document), settings),
    goesByTags: settings.goesByTags,
    report,
  });
  const unlimited = providersWithoutBudget(settings);
  const deployments = all.filter(({ provider }) => !unlimited.has(provider));
  const grouped = groupDeployments(deployments, settings);
  reportSharedLimits(grouped, report);
  const members = budgetsOfMembers(grouped.madeOf as ReadDeployment[][], settings, report);
  const groups = (grouped.config.groups ?? []).map((group, at) => ({
    ...group,
    members: (group.members ?? []).map((member, index) => {
      const budget = members[at]?.[index];
      if (budget === undefined) return member;
      return { ...member, limits: { ...member.limits, budget_usd: budget } };
    }),
  }));
  return {
    ok: true,
    config: { ...grouped.config, groups: [...groups, ...overallGroup(groups, settings, report)] },
    notes: [...grouped.notes, ...report.notes],
    omitted: [...report.omitted(), ...grouped.omitted],
    pathOf: grouped.pathOf,
  };
}

/** Reads the credentials that deployments name. Variables that are no keys are resolved with the deployment. */
function credentialsOf(document: Fields, environment: Environment): ReadonlyMap<string, Fields> {
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

/** Finds the base URL that a document sets for all deployments of a provider. */
function basesOf(environment: Environment, { openaiBase }: LitellmSettings) {
  return (named: string): string | undefined => {
    const word = named.toUpperCase().replace(/[^A-Z0-9]+/g, '_');
    const set = environment(`${word}_API_BASE`) ?? environment(`${word}_BASE_URL`);
    return set ?? (named === 'openai' ? openaiBase : undefined);
  };
}

/** Lists providers whose budget cannot be taken over. Their models would cost more than was allowed. */
function providersWithoutBudget({ providerBudgets }: LitellmSettings): ReadonlySet<string> {
  return new Set(
    [...providerBudgets].flatMap(([name, { budget }]) => (budget === null ? [idOf(name)] : [])),
  );
}

function idOf(provider: string): string {
  return litellmProvider(provider)?.id ?? provider;
}

/** Fields of a deployment that limit it, by the limits that they become. */
const LIMIT_FIELDS = [
  ['max_concurrency', 'max_parallel_requests'],
  ['rpm', 'rpm'],
  ['tpm', 'tpm'],
] as const;

/** Reports limits of deployments that are members of several groups: each group counts for itself. */
function reportSharedLimits({ madeOf, config }: Grouped, report: ImportReport): void {
  const groupsOf = new Map<ListedDeployment, string[]>();
  for (const [index, deployments] of madeOf.entries()) {
    const name = quoteName(config.groups?.[index]?.name ?? '');
    for (const each of deployments) groupsOf.set(each, [...(groupsOf.get(each) ?? []), name]);
  }
  for (const [{ at, limits }, groups] of groupsOf) {
    const [, field] = LIMIT_FIELDS.find(([limit]) => typeof limits[limit] === 'number') ?? [];
    if (field === undefined || groups.length < 2) continue;
    const message = `counts in each of the groups ${groups.join(', ')} alone, so that up to ${groups.length} times as many calls may go there`;
    report.omit(`model_list[${at}].litellm_params.${field}`, message);
  }
}

/** Makes the budgets of members: their own, and those of their providers. What several share is divided among them. */
function budgetsOfMembers(
  madeOf: readonly (readonly ReadDeployment[])[],
  { providerBudgets }: LitellmSettings,
  report: ImportReport,
) {
  const all = madeOf.flat();
  const shares = new Map<ReadDeployment, Budget['budget']>();
  const add = (deployment: ReadDeployment, budget: Budget['budget']): void => {
    const known = shares.get(deployment);
    shares.set(deployment, known === undefined ? budget : stricterBudget(known, budget));
  };
  for (const deployment of all) {
    if (deployment.budget === null) continue;
    const { budget, note } = deployment.budget;
    const path = `model_list[${deployment.at}].litellm_params.max_budget`;
    if (note !== undefined) report.notes.add(`${note} (${path}).`);
    add(deployment, budget);
  }
  for (const [name, { path, budget }] of providerBudgets) {
    if (budget === null) continue;
    const id = idOf(name);
    const places = all.filter(({ provider }) => provider === id).length;
    if (places === 0) {
      report.omit(path, 'names a provider that no imported model is at');
      continue;
    }
    if (budget.note !== undefined) report.notes.add(`${budget.note} (${path}).`);
    if (places > 1) {
      report.notes.add(`${path} is divided among ${places} members, because each counts alone.`);
    }
    const share = sharedBudget(budget.budget, places);
    for (const deployment of new Set(all)) if (deployment.provider === id) add(deployment, share);
  }
  return madeOf.map((group) => group.map((deployment) => shares.get(deployment)));
}

/** Maximum patterns of a group. */
const PATTERNS_MAX = 200;

/** Makes the group over all imported models that limits of the whole proxy become. */
function overallGroup(
  groups: readonly Group[],
  { overall: { maxConcurrency, budget } }: LitellmSettings,
  report: ImportReport,
): Group[] {
  if (maxConcurrency === null && budget === null) return [];
  if (budget?.note !== undefined) report.notes.add(`${budget.note} (litellm_settings.max_budget).`);
  const models = groups.flatMap(({ match }) => match?.models ?? []);
  const names = new Set(groups.map(({ name }) => name));
  const name = names.has('all-models') ? 'all-imported-models' : 'all-models';
  report.notes.add(
    `Limits of the whole proxy became the group "${name}", over all imported models.`,
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
