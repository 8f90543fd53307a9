import { formatPath } from '../../../../src/config/field-error.ts';
import type { ModelFallback, GroupOptions } from '../model-groups.ts';
import { numberIn } from '../groups.ts';
import {
  budgetOf,
  whyNoBudget,
  type ConvertedBudget,
  missingVariable,
  resolveValue,
  type Environment,
  entriesOf,
  fieldsOf,
  isStated,
  type UnknownFields,
  type ImportReport,
} from './fields.ts';

export interface LitellmSettings extends GroupOptions {
  /** Slots of deployments that do not set any. */
  readonly maxParallel: number | null;
  /** Limits over all models together. */
  readonly overall: {
    readonly maxConcurrency: number | null;
    readonly budget: ConvertedBudget | null;
  };
  /** Budgets by provider, with the path of each. null if the budget cannot be converted, and with it the models. */
  readonly providerBudgets: ReadonlyMap<
    string,
    { readonly path: string; readonly budget: ConvertedBudget | null }
  >;
  /** Base URL of OpenAI's deployments without one. */
  readonly openaiBase: string | undefined;
  readonly goesByTags: boolean;
}

type LitellmSection = 'general_settings' | 'litellm_settings' | 'router_settings';

const SLOTS_MAX = 100_000;
const RETRIES_MAX = 10;
const HOLD_MS_MAX = 3_600_000;

/** Why settings that decide where calls go, what they cost or who may call are omitted. */
const REASONS: ReadonlyMap<string, string> = new Map(
  Object.entries({
    master_key: 'is not imported; create gateway keys with headgate keys create',
    routing_strategy:
      'has no counterpart, because a group chooses among members with room by weight, and keeps an agent at its member',
    context_window_fallbacks:
      'has no counterpart, because Headgate returns the refusal of a call that is too long for its model',
    content_policy_fallbacks:
      'has no counterpart, because Headgate returns the refusal of such a call',
    request_timeout:
      'has no counterpart; set `holds.idle_ms` and `holds.max_hold_ms` of the groups',
    timeout: 'has no counterpart; set `holds.idle_ms` and `holds.max_hold_ms` of the groups',
    allowed_fails:
      'has no counterpart, because `breaker.threshold` of the groups is a share of calls',
    ssl_verify: 'has no counterpart, because Headgate verifies the certificate of each upstream',
    enable_pre_call_checks:
      'has no counterpart, because Headgate does not compare calls with context windows',
    cache: 'has no counterpart, because every call reaches an upstream and has its cost there',
  }),
);

/** Reads settings one by one, and reports those that were not read. */
class SettingsReader {
  readonly #used = new Set<string>();
  readonly #sections: ReadonlyMap<LitellmSection, UnknownFields>;
  readonly #environment: Environment;
  readonly #report: ImportReport;

  constructor(document: UnknownFields, environment: Environment, report: ImportReport) {
    const names: readonly LitellmSection[] = [
      'general_settings',
      'litellm_settings',
      'router_settings',
    ];
    this.#environment = environment;
    this.#report = report;
    this.#sections = new Map(names.map((name) => [name, this.#map(name, document[name])]));
  }

  /** Returns a setting that is a map. Empty if it is absent or omitted. */
  map(section: LitellmSection, field: string): UnknownFields {
    return this.#map(`${section}.${field}`, this.take(section, field));
  }

  #map(path: string, value: unknown): UnknownFields {
    const isMap = typeof value === 'object' && !Array.isArray(value);
    if (value !== undefined && !isMap) this.#report.omit(path, 'expected a map');
    return fieldsOf(value);
  }

  /** Returns a setting. undefined if it is absent, or omitted because its variable is not set. */
  take(section: LitellmSection, field: string): unknown {
    this.#used.add(`${section}.${field}`);
    const written = this.#sections.get(section)?.[field];
    if (written === undefined || written === null) return undefined;
    const resolved = resolveValue(written, this.#environment);
    if ('value' in resolved) return resolved.value;
    this.#report.omit(`${section}.${field}`, missingVariable(resolved.missing));
    return undefined;
  }

  /** Returns a number. undefined also for a value that is not a number. */
  number(section: LitellmSection, field: string): number | undefined {
    const value = numberIn(this.take(section, field));
    if (value === undefined || (typeof value === 'number' && value >= 0)) return value;
    this.#report.omit(`${section}.${field}`, 'expected a number of at least 0');
    return undefined;
  }

  /** Returns a switch, which YAML 1.1 also writes as `yes` and `on`. */
  isOn(section: LitellmSection, field: string): boolean {
    const value = this.take(section, field);
    if (typeof value === 'boolean' || value === undefined) return value === true;
    const text = typeof value === 'string' ? value.toLowerCase() : '';
    const isOn = ['y', 'yes', 'on', 'true'].includes(text);
    if (!isOn && !['n', 'no', 'off', 'false'].includes(text)) {
      this.#report.omit(`${section}.${field}`, 'expected true or false');
    }
    return isOn;
  }

  /** Reports all settings that were not read. */
  reportOthers(): void {
    for (const [section, fields] of this.#sections) {
      for (const [field, value] of Object.entries(fields)) {
        const path = `${section}.${field}`;
        // Only this field has an effect if it is false: certificates are not verified.
        if (this.#used.has(path) || (field !== 'ssl_verify' && !isStated(value))) continue;
        this.#report.omit(path, REASONS.get(field) ?? 'has no counterpart');
      }
    }
  }
}

export function readSettings(
  document: UnknownFields,
  titles: readonly string[],
  environment: Environment,
  report: ImportReport,
): LitellmSettings {
  const reader = new SettingsReader(document, environment, report);
  const openaiBase = reader.take('litellm_settings', 'api_base');
  const read: LitellmSettings = {
    fallbacks: fallbacksOf(reader, titles, environment, report),
    aliases: aliasesOf(reader.map('router_settings', 'model_group_alias'), environment, report),
    settings: groupSettings(reader, report),
    maxParallel:
      slotsOf(reader, 'router_settings', 'default_max_parallel_requests') ??
      slotsOf(reader, 'general_settings', 'max_parallel_requests'),
    overall: {
      maxConcurrency: slotsOf(reader, 'general_settings', 'global_max_parallel_requests'),
      budget: overallBudget(reader, report),
    },
    providerBudgets: providerBudgets(
      reader.map('router_settings', 'provider_budget_config'),
      environment,
      report,
    ),
    openaiBase: typeof openaiBase === 'string' ? openaiBase : undefined,
    goesByTags: reader.isOn('router_settings', 'enable_tag_filtering'),
  };
  // The default strategy of LiteLLM is close to what members do.
  if (reader.take('router_settings', 'routing_strategy') !== 'simple-shuffle') {
    reportStrategy(document, report);
  }
  reader.reportOthers();
  return read;
}

function reportStrategy(document: UnknownFields, report: ImportReport): void {
  const { routing_strategy: strategy } = fieldsOf(document['router_settings']);
  if (strategy === undefined || strategy === null) return;
  report.omit('router_settings.routing_strategy', REASONS.get('routing_strategy') ?? '');
}

function slotsOf(reader: SettingsReader, section: LitellmSection, field: string): number | null {
  const slots = reader.number(section, field);
  // 0 is the default of LiteLLM, and means no limit.
  if (slots === undefined || slots === 0) return null;
  return Math.min(SLOTS_MAX, Math.max(1, Math.floor(slots)));
}

function groupSettings(reader: SettingsReader, report: ImportReport): LitellmSettings['settings'] {
  const general = reader.number('litellm_settings', 'num_retries');
  const retries = reader.number('router_settings', 'num_retries') ?? general;
  const cooldown =
    reader.number('router_settings', 'cooldown_time') ??
    reader.number('litellm_settings', 'cooldown_time');
  const isOff = reader.isOn('router_settings', 'disable_cooldowns');
  if (retries !== undefined && retries > RETRIES_MAX) {
    const message = `exceeds the maximum of ${RETRIES_MAX}, which is used instead`;
    report.omit('router_settings.num_retries', message);
  }
  const hold = Math.min(HOLD_MS_MAX, Math.max(100, Math.round((cooldown ?? 0) * 1_000)));
  return {
    ...(retries === undefined
      ? {}
      : { retries: { max: Math.min(RETRIES_MAX, Math.round(retries)) } }),
    ...(cooldown === undefined && !isOff
      ? {}
      : {
          breaker: {
            ...(isOff ? { threshold: null } : {}),
            ...(cooldown === undefined
              ? {}
              : { hold_ms: hold, hold_max_ms: Math.max(hold, 60_000) }),
          },
        }),
  };
}

/** Reads the fallbacks of both sections. Those of the router take precedence. Defaults apply to models without any. */
function fallbacksOf(
  reader: SettingsReader,
  titles: readonly string[],
  environment: Environment,
  report: ImportReport,
): ModelFallback[] {
  const found = new Map<string, ModelFallback>();
  const defaults: Pick<ModelFallback, 'path' | 'to'>[] = [];
  const sections = ['router_settings', 'litellm_settings'] as const;
  for (const section of sections) {
    const written = reader.take(section, 'fallbacks');
    if (written !== undefined && !Array.isArray(written)) {
      report.omit(`${section}.fallbacks`, 'expected a list, as in [{ gpt-4o: [gpt-4.1] }]');
    }
    for (const [at, entry] of entriesOf(written).entries()) {
      const path = `${section}.fallbacks[${at}]`;
      if (Object.keys(fieldsOf(entry)).length === 0) {
        report.omit(path, 'expected a model and a list of others, as in { gpt-4o: [gpt-4.1] }');
      }
      for (const [from, models] of Object.entries(fieldsOf(entry))) {
        const to = resolveValue(models, environment);
        if ('missing' in to) report.omit(path, missingVariable(to.missing));
        const names = 'value' in to ? namesOf(to.value, path, report) : [];
        if (from === '*') defaults.push({ path, to: names });
        else if (!found.has(from)) found.set(from, { path, from, to: names, isDefault: false });
      }
    }
  }
  for (const section of sections) {
    const names = namesOf(
      reader.take(section, 'default_fallbacks') ?? [],
      `${section}.default_fallbacks`,
      report,
    );
    if (names.length > 0) defaults.push({ path: `${section}.default_fallbacks`, to: names });
  }
  const [first] = defaults;
  if (first !== undefined) {
    const [inside] = first.to;
    for (const from of titles) {
      if (!found.has(from) && from !== inside) found.set(from, { ...first, from, isDefault: true });
    }
  }
  return [...found.values()];
}

function namesOf(value: unknown, path: string, report: ImportReport): string[] {
  const entries = typeof value === 'string' ? [value] : entriesOf(value);
  const names = entries.filter((entry) => typeof entry === 'string');
  if (names.length < entries.length || (entries.length === 0 && !Array.isArray(value))) {
    report.omit(path, 'expected a list of model names');
  }
  return names;
}

function aliasesOf(
  aliases: UnknownFields,
  environment: Environment,
  report: ImportReport,
): LitellmSettings['aliases'] {
  return Object.entries(aliases).flatMap(([name, target]) => {
    const path = formatPath(['router_settings', 'model_group_alias', name]);
    const written = typeof target === 'string' ? target : fieldsOf(target)['model'];
    const resolved = resolveValue(written, environment);
    if ('missing' in resolved) {
      report.omit(path, missingVariable(resolved.missing));
      return [];
    }
    const of = resolved.value;
    if (typeof of === 'string' && !name.includes('*') && name.length <= 200) {
      return [{ path, name, of }];
    }
    report.omit(path, 'expected the name of a model, and no * in its alias');
    return [];
  });
}

function overallBudget(reader: SettingsReader, report: ImportReport): ConvertedBudget | null {
  const usd = reader.number('litellm_settings', 'max_budget');
  const duration = reader.take('litellm_settings', 'budget_duration');
  // 0 disables the budget in LiteLLM.
  if (usd === undefined || usd === 0) return null;
  const budget = budgetOf(usd, typeof duration === 'string' ? duration : undefined);
  if (budget !== null) return budget;
  const message = `${whyNoBudget(duration)}. Until then, the group over all models has this budget per month, so more may be spent`;
  report.omit('litellm_settings.max_budget', message);
  return { budget: { per_month: usd } };
}

function providerBudgets(
  written: UnknownFields,
  environment: Environment,
  report: ImportReport,
): LitellmSettings['providerBudgets'] {
  const budgets = new Map<string, { path: string; budget: ConvertedBudget | null }>();
  for (const [name, entry] of Object.entries(written)) {
    const path = `router_settings.provider_budget_config.${name}`;
    const { budget_limit: limit, max_budget: most = limit, ...times } = fieldsOf(entry);
    const usd = resolveValue(most, environment);
    const amount = 'value' in usd ? numberIn(usd.value) : null;
    const time = resolveValue(times['time_period'] ?? times['budget_duration'], environment);
    const period = 'value' in time ? time.value : undefined;
    const budget =
      typeof amount === 'number' && amount >= 0
        ? budgetOf(amount, typeof period === 'string' ? period : undefined)
        : null;
    if (budget === null) {
      report.omit(
        path,
        'expected a `budget_limit` in USD, and a `time_period` as in 30d. Models of this provider are omitted, because nothing would limit their cost',
      );
    }
    budgets.set(name.toLowerCase(), { path, budget });
  }
  return budgets;
}
