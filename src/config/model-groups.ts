// Step 2, of lists of deployments, whichever system they are of. check-config.ts lists all steps.

import type { ConfigInput } from '../contract/config/config.ts';
import type { Dialect } from '../contract/dialect.ts';
import { globsMayOverlap } from '../routing/glob.ts';
import { providerNamed } from '../providers/index.ts';
import type { FieldError } from './field-error.ts';
import { groupNameOf } from './foreign-groups.ts';
import type { ListedDeployment } from './listed-deployment.ts';
import { DeploymentUpstreams, dialectOfDeployment } from './deployment-upstreams.ts';

type Group = NonNullable<ConfigInput['groups']>[number];
type Member = NonNullable<Group['members']>[number];

/** Models whose calls go on to other models, where nothing of their own takes them. */
export interface Fallback {
  /** Where it is written. */
  readonly path: string;
  readonly from: string;
  readonly to: readonly string[];
  /** True: it applies to every model without a fallback of its own. */
  readonly isDefault: boolean;
}

/** Settings beside the deployments that decide where calls go. */
export interface GroupOptions {
  readonly fallbacks: readonly Fallback[];
  /** Other names of a model, by name. */
  readonly aliases: readonly {
    readonly path: string;
    readonly name: string;
    readonly of: string;
  }[];
  /** Settings of every group. */
  readonly settings: Omit<Group, 'name' | 'match' | 'members'>;
}

/** Groups that were made of deployments. */
export interface Grouped {
  readonly config: ConfigInput;
  readonly notes: readonly string[];
  readonly omitted: readonly FieldError[];
  /** Translates a path in the configuration back into the list. */
  readonly pathOf: (path: string) => string;
  /** The deployment that each member was made of, by group. */
  readonly madeOf: readonly (readonly ListedDeployment[])[];
}

/** Maximum tier of a member. */
const TIER_MAX = 10;

/** A group in the making. */
interface Draft {
  readonly title: string;
  /** Other names of the model. */
  readonly others: readonly string[];
  readonly dialect: Dialect;
  readonly places: { readonly deployment: ListedDeployment; readonly tier: number | undefined }[];
}

/** Makes a group of the deployments of each model. */
export function groupDeployments(
  deployments: readonly ListedDeployment[],
  { fallbacks, aliases, settings }: GroupOptions,
): Grouped {
  const omitted: FieldError[] = [];
  const drafts = draftsOf(deployments, aliases, omitted);
  addFallbacks(drafts, fallbacks, omitted);
  const upstreams = new DeploymentUpstreams();
  const names = new Set<string>();
  const notes: string[] = [];
  const groups: Group[] = [];
  const madeOf: ListedDeployment[][] = [];
  for (const { title, others, dialect, places } of drafts) {
    const made = places.flatMap(({ deployment, tier }) => {
      const member = upstreams.place(deployment, title, dialect);
      if (typeof member === 'string') {
        omitted.push({
          path: `model_list[${deployment.at}].litellm_params.model`,
          message: member,
        });
        return [];
      }
      const models = modelsOf(deployment, [title, ...others]);
      return [{ deployment, member: memberOf(deployment, member, tier, models) }];
    });
    if (made.length === 0) continue;
    const name = freeName(groupNameOf(title), names);
    if (name !== title) notes.push(`"${title}" became the group "${name}".`);
    upstreams.endGroup();
    groups.push({
      name,
      match: { models: [title, ...others] },
      members: made.map(({ member }) => member),
      ...settings,
    });
    madeOf.push(made.map(({ deployment }) => deployment));
  }
  const keyNotes = madeOf.flat().flatMap(({ keyNote }) => keyNote ?? []);
  return {
    config: { upstreams: upstreams.list(), groups },
    notes: [...notes, ...upstreams.notes, ...new Set(keyNotes)],
    omitted,
    pathOf: pathBack(madeOf),
    madeOf,
  };
}

/** Sorts deployments by title, and leaves out those whose calls could not be told apart from others'. */
function draftsOf(
  deployments: readonly ListedDeployment[],
  aliases: GroupOptions['aliases'],
  omitted: FieldError[],
): Draft[] {
  const drafts = new Map<string, Draft>();
  for (const deployment of deployments) {
    const { at, title } = deployment;
    const path = `model_list[${at}].model_name`;
    const wrong = wrongPattern(deployment) ?? sameInOtherLetters(title, drafts.keys());
    if (wrong !== null) {
      omitted.push({ path, message: wrong });
      continue;
    }
    const draft = drafts.get(title);
    if (draft !== undefined) draft.places.push({ deployment, tier: deployment.tier });
    else {
      const places = [{ deployment, tier: deployment.tier }];
      drafts.set(title, { title, others: [], dialect: dialectOfDeployment(deployment), places });
    }
  }
  for (const [title, draft] of drafts) {
    // Members of one dialect are needed, and OpenAI's is the one that several providers speak beside their own.
    const speaksOpenai = draft.places.some(
      ({ deployment }) => dialectOfDeployment(deployment) === 'openai',
    );
    const dialect = speaksOpenai ? 'openai' : draft.dialect;
    drafts.set(title, { ...draft, dialect, others: aliasesOf(title, aliases, drafts, omitted) });
  }
  for (const { path, of } of aliases) {
    if (drafts.has(of)) continue;
    omitted.push({
      path,
      message: `stands for "${of}", which is not among the models that are imported`,
    });
  }
  return withoutOverlaps([...drafts.values()], omitted);
}

/** Says why a pattern of names cannot be a group: its calls would have to be renamed by a pattern too. */
function wrongPattern({ title, model }: ListedDeployment): string | null {
  if (!title.includes('*') && !model.includes('*')) return null;
  if (title === model) return null;
  const slash = title.indexOf('/');
  // Headgate removes the id of an upstream, and a slash, from the beginning of a model.
  if (slash > 0 && title.slice(slash + 1) === model) {
    if (/^[a-z0-9][a-z0-9-]{0,31}$/.test(title.slice(0, slash))) return null;
    return `names models by the prefix "${title.slice(0, slash)}", which cannot be the id of an upstream: use a-z, 0-9 and dash`;
  }
  return 'is a pattern whose models have other names there, and only names without a pattern can be changed; list the models one by one';
}

function sameInOtherLetters(title: string, titles: Iterable<string>): string | null {
  const same = [...titles].find(
    (each) => each !== title && each.toLowerCase() === title.toLowerCase(),
  );
  if (same === undefined) return null;
  return `is "${same}" in other letters, and models are the same in any letters here; give it another name`;
}

/** Lists the other names of a model that no other model has. */
function aliasesOf(
  title: string,
  aliases: GroupOptions['aliases'],
  drafts: ReadonlyMap<string, Draft>,
  omitted: FieldError[],
): string[] {
  return aliases.flatMap(({ path, name, of }) => {
    if (of !== title || name === title) return [];
    const isTaken = [...drafts.keys()].some((each) => each.toLowerCase() === name.toLowerCase());
    if (!isTaken) return [name];
    omitted.push({ path, message: 'is the name of a model in model_list too, which has it' });
    return [];
  });
}

/**
 * Leaves out each pattern with which a call would match two groups with members, and could go to one only. Patterns
 * come last, so that a name without one finds the members of its own group first.
 */
function withoutOverlaps(drafts: readonly Draft[], omitted: FieldError[]): Draft[] {
  const isPattern = ({ title }: Draft): number => Number(title.includes('*'));
  const specificFirst = drafts.toSorted(
    (a, b) => isPattern(a) - isPattern(b) || (isPattern(a) && b.title.length - a.title.length),
  );
  const kept: Draft[] = [];
  for (const draft of specificFirst) {
    const other = kept.find((each) => meets(each, draft) || meets(draft, each));
    if (other === undefined) {
      kept.push(draft);
      continue;
    }
    omitted.push({
      path: `model_list[${draft.places[0]?.deployment.at ?? 0}].model_name`,
      message: `matches calls of "${other.title}" too, and a call goes to the members of one group; list its models one by one`,
    });
  }
  return kept;
}

/** Whether a call for one model may match another, also with the id of an upstream in front of a name. */
function meets(one: Draft, two: Draft): boolean {
  const names = [two.title, ...two.others];
  return [one.title, ...one.others].some((pattern) => {
    if (names.some((name) => globsMayOverlap(pattern, name))) return true;
    const [, prefix = '', rest = ''] = /^([^/*]+)\/(.+)$/.exec(pattern) ?? [];
    const provider = rest === '' ? null : providerNamed(prefix.toLowerCase());
    if (provider === null) return false;
    const isThere = two.places.some(({ deployment }) => deployment.provider === provider.id);
    return names.some(
      (name) =>
        !(/^\*+$/.test(rest) && name.includes('/')) &&
        globsMayOverlap(rest, name) &&
        (isThere || provider.models?.some((model) => globsMayOverlap(model, name)) === true),
    );
  });
}

/** Puts the deployments of other models behind a model's own, in tiers that are used while these have no room. */
function addFallbacks(
  drafts: readonly Draft[],
  fallbacks: readonly Fallback[],
  omitted: FieldError[],
): void {
  const own = new Map(drafts.map(({ title, places }) => [title, [...places]]));
  for (const { path, from, to, isDefault } of fallbacks) {
    const draft = drafts.find(({ title }) => title === from);
    if (draft === undefined) {
      const message = `leads from "${from}", which is not among the models that are imported`;
      if (!isDefault) omitted.push({ path, message });
      continue;
    }
    for (const title of to) {
      if (title === from) continue;
      const others = own.get(title);
      if (others === undefined) {
        const message = `leads to "${title}", which is not among the models that are imported`;
        omitted.push({ path, message });
        continue;
      }
      const last = Math.max(...draft.places.map(({ tier = 1 }) => tier));
      for (const { deployment, tier = 1 } of others) {
        const whyNotThere = whyNot(draft, deployment);
        if (whyNotThere === null) {
          if (last + tier > TIER_MAX) {
            const message = `keeps no order behind tier ${TIER_MAX}, which model_list[${deployment.at}] shares with those before it`;
            omitted.push({ path, message });
          }
          draft.places.push({ deployment, tier: Math.min(TIER_MAX, last + tier) });
        } else {
          const message = `does not lead from "${from}" to model_list[${deployment.at}]: ${whyNotThere}`;
          omitted.push({ path, message });
        }
      }
    }
  }
}

/** Says why calls of a model cannot go on to a deployment of another one. Null: they can. */
function whyNot(from: Draft, deployment: ListedDeployment): string | null {
  if (from.title.includes('*') || deployment.title.includes('*')) {
    return 'calls of a pattern have no one name there';
  }
  if (!speaks(deployment, from.dialect)) {
    return 'they speak two dialects, and Headgate does not translate';
  }
  return deployment.isAlone === true ? 'its budget would count in each group alone' : null;
}

/** Whether a deployment can be called in a dialect: its own, or OpenAI's if its provider speaks that too. */
function speaks(deployment: ListedDeployment, dialect: Dialect): boolean {
  const own = dialectOfDeployment(deployment);
  return own === dialect || (dialect === 'openai' && (own === 'azure' || own === 'ollama'));
}

/** Makes the names of a model there, by the names of callers. */
function modelsOf(
  { title, model }: ListedDeployment,
  names: readonly string[],
): Record<string, string> {
  if (title.includes('*')) return {};
  const all = names.flatMap((name) => {
    const [, prefix = '', rest = ''] = /^([^/]+)\/(.+)$/.exec(name) ?? [];
    const isStripped = typeof providerNamed(prefix.toLowerCase())?.baseUrl === 'string';
    return isStripped ? [name, rest] : [name];
  });
  return Object.fromEntries(all.filter((name) => name !== model).map((name) => [name, model]));
}

function memberOf(
  { secret, limits, weight, firstTokenMs }: ListedDeployment,
  { upstream, name }: { readonly upstream: string; readonly name: string | undefined },
  tier: number | undefined,
  models: Record<string, string>,
): Member {
  return {
    ...(name === undefined ? {} : { name }),
    upstream,
    ...(secret === null ? {} : { secret }),
    ...(Object.keys(models).length === 0 ? {} : { models }),
    limits,
    ...(weight === undefined ? {} : { weight }),
    ...(tier === undefined ? {} : { tier }),
    ...(firstTokenMs === undefined ? {} : { first_token_ms: firstTokenMs }),
  };
}

/** Makes a name that no group has yet. */
function freeName(wanted: string, taken: Set<string>): string {
  const base = wanted === '' ? 'any-model' : wanted;
  let name = base;
  for (let count = 2; taken.has(name); count += 1) name = `${base.slice(0, 60)}-${count}`;
  taken.add(name);
  return name;
}

/** Translates a path back into the list, by the places in it that each group was made of. */
function pathBack(groups: readonly (readonly ListedDeployment[])[]): (path: string) => string {
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
    return field === undefined
      ? `model_list[${at}]`
      : `model_list[${at}].litellm_params.${fields[field] ?? field}`;
  };
}
