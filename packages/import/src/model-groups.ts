import type { Dialect } from '../../../src/contract/http.ts';
import { globsMayOverlap } from '../../../src/routing/glob.ts';
import { providerNamed } from '../../../src/providers/catalog.ts';
import type { FieldError } from '../../../src/config/field-error.ts';
import { freeName, groupNameOf } from './groups.ts';
import { inDialect, membersOf, type Deployment, type GroupInput } from './members.ts';
import type { MadeUpstreams } from './targets.ts';

export interface ListedDeployment extends Deployment {
  /** Name by which callers request the model, or a pattern of names. */
  readonly title: string;
  /** Id of the provider here, or the name of one that is not built in. */
  readonly provider: string;
  /** Name of the model there, or a pattern of names. */
  readonly name: string;
  /** Whether it has limits that several groups cannot count together, so that it is a member of one group only. */
  readonly isAlone: boolean;
}

export interface ModelFallback {
  readonly path: string;
  readonly from: string;
  readonly to: readonly string[];
  /** Whether it applies to every model without its own fallback. */
  readonly isDefault: boolean;
}

/** Settings in addition to the deployments that decide where calls go. */
export interface GroupOptions {
  readonly fallbacks: readonly ModelFallback[];
  readonly aliases: readonly {
    readonly path: string;
    readonly name: string;
    readonly of: string;
  }[];
  readonly settings: Omit<GroupInput, 'name' | 'match' | 'members'>;
}

export interface Grouped<Listed extends ListedDeployment> {
  readonly groups: readonly GroupInput[];
  readonly notes: readonly string[];
  readonly omitted: readonly FieldError[];
  /** The deployment of each member, by group. */
  readonly madeOf: readonly (readonly Listed[])[];
}

interface GroupDraft {
  readonly title: string;
  /** Aliases of the model. */
  readonly others: readonly string[];
  readonly dialect: Dialect;
  readonly places: { readonly deployment: ListedDeployment; readonly tier: number | undefined }[];
}

export function groupDeployments<Listed extends ListedDeployment>(
  deployments: readonly Listed[],
  { fallbacks, aliases, settings }: GroupOptions,
  upstreams: MadeUpstreams,
): Grouped<Listed> {
  const omitted: FieldError[] = [];
  const drafts = draftsOf(deployments, aliases, omitted);
  addFallbacks(drafts, fallbacks, omitted);
  const byPath = new Map(deployments.map((each) => [each.at, each]));
  const names = new Set<string>();
  const notes: string[] = [];
  const groups: GroupInput[] = [];
  const madeOf: Listed[][] = [];
  for (const { title, others, dialect, places } of drafts) {
    const models = [title, ...others];
    const placed = places.map(({ deployment, tier }) => ({
      ...deployment,
      member: { ...deployment.member, ...(tier === undefined ? {} : { tier }) },
    }));
    const made = membersOf(placed, models, upstreams, dialect);
    omitted.push(...made.omitted);
    if (made.members.length === 0) continue;
    const name = freeName(groupNameOf(title) || 'any-model', (each) => names.has(each));
    names.add(name);
    if (name !== title) notes.push(`\`${title}\` became the group \`${name}\`.`);
    groups.push({ name, match: { models }, members: [...made.members], ...settings });
    madeOf.push(made.paths.flatMap((path) => byPath.get(path) ?? []));
  }
  return { groups, notes, omitted, madeOf };
}

/** Groups deployments by title, and omits those whose calls could not be distinguished from others. */
function draftsOf(
  deployments: readonly ListedDeployment[],
  aliases: GroupOptions['aliases'],
  omitted: FieldError[],
): GroupDraft[] {
  const drafts = new Map<string, GroupDraft>();
  for (const deployment of deployments) {
    const { at, title } = deployment;
    const path = `${at}.model_name`;
    const wrong = wrongPattern(deployment) ?? sameInOtherLetters(title, drafts.keys());
    if (wrong !== null) {
      omitted.push({ path, message: wrong });
      continue;
    }
    const draft = drafts.get(title);
    const own = { deployment, tier: deployment.member?.tier };
    if (draft !== undefined) draft.places.push(own);
    else {
      const { dialect } = deployment.place;
      drafts.set(title, { title, others: [], dialect, places: [own] });
    }
  }
  for (const [title, draft] of drafts) {
    // Members need one dialect, and OpenAI's is the one that several providers support in addition to their own.
    const [first] = draft.places;
    const isOpenai =
      draft.places.some(({ deployment }) => deployment.place.dialect === 'openai') &&
      first !== undefined &&
      inDialect(first.deployment.place, 'openai') !== null;
    const dialect = isOpenai ? 'openai' : draft.dialect;
    drafts.set(title, { ...draft, dialect, others: aliasesOf(title, aliases, drafts, omitted) });
  }
  for (const { path, of } of aliases) {
    if (drafts.has(of)) continue;
    omitted.push({
      path,
      message: `is an alias of \`${of}\`, which is not an imported model`,
    });
  }
  return withoutOverlaps([...drafts.values()], omitted);
}

/** Returns why a pattern cannot be a group. Its calls would have to be renamed by a pattern too. */
function wrongPattern({ title, name }: ListedDeployment): string | null {
  if (!title.includes('*') && !name.includes('*')) return null;
  if (title === name) return null;
  const slash = title.indexOf('/');
  // Headgate removes the id of an upstream, and a slash, from the beginning of a model.
  if (slash > 0 && title.slice(slash + 1) === name) {
    if (/^[a-z0-9][a-z0-9-]{0,31}$/.test(title.slice(0, slash))) return null;
    return `has the prefix \`${title.slice(0, slash)}\`, which cannot be the id of an upstream; use a-z, 0-9 and dash`;
  }
  return 'is a pattern whose models have other names at the provider, and patterns cannot be renamed; list the models one by one';
}

function sameInOtherLetters(title: string, titles: Iterable<string>): string | null {
  const same = [...titles].find(
    (each) => each !== title && each.toLowerCase() === title.toLowerCase(),
  );
  if (same === undefined) return null;
  return `is \`${same}\` in another case, and models are case-insensitive here; give it another name`;
}

/** Returns the aliases of a model that are not names of other models. */
function aliasesOf(
  title: string,
  aliases: GroupOptions['aliases'],
  drafts: ReadonlyMap<string, GroupDraft>,
  omitted: FieldError[],
): string[] {
  return aliases.flatMap(({ path, name, of }) => {
    if (of !== title || name === title) return [];
    const isTaken = [...drafts.keys()].some((each) => each.toLowerCase() === name.toLowerCase());
    if (!isTaken) return [name];
    omitted.push({
      path,
      message: 'is also the name of a model in `model_list`, which takes precedence',
    });
    return [];
  });
}

/**
 * Omits each pattern that overlaps another group with members, because a call can run in one of them only. Patterns
 * come last, so that a name without a pattern first finds the members of its own group.
 */
function withoutOverlaps(drafts: readonly GroupDraft[], omitted: FieldError[]): GroupDraft[] {
  const isPattern = ({ title }: GroupDraft): number => Number(title.includes('*'));
  const specificFirst = drafts.toSorted(
    (a, b) => isPattern(a) - isPattern(b) || (isPattern(a) && b.title.length - a.title.length),
  );
  const kept: GroupDraft[] = [];
  for (const draft of specificFirst) {
    const other = kept.find((each) => meets(each, draft) || meets(draft, each));
    if (other === undefined) {
      kept.push(draft);
      continue;
    }
    omitted.push({
      path: `${draft.places[0]?.deployment.at ?? 'model_list'}.model_name`,
      message: `also matches calls of \`${other.title}\`, and a call runs at the members of one group; list its models one by one`,
    });
  }
  return kept;
}

/** Whether a call for one model may match another, also with the id of an upstream before a name. */
function meets(one: GroupDraft, two: GroupDraft): boolean {
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
        // A pattern may match names that no call uses, but a full name is requested by calls.
        (!rest.includes('*') ||
          isThere ||
          provider.models?.some((model) => globsMayOverlap(model, name)) === true),
    );
  });
}

/** Adds the deployments of other models as later tiers, which are used while a model's own deployments have no room. */
function addFallbacks(
  drafts: readonly GroupDraft[],
  fallbacks: readonly ModelFallback[],
  omitted: FieldError[],
): void {
  const own = new Map(drafts.map(({ title, places }) => [title, [...places]]));
  for (const { path, from, to, isDefault } of fallbacks) {
    const draft = drafts.find(({ title }) => title === from);
    if (draft === undefined) {
      const message = `is a fallback of \`${from}\`, which is not an imported model`;
      if (!isDefault) omitted.push({ path, message });
      continue;
    }
    for (const title of to) {
      if (title === from) continue;
      const others = own.get(title);
      if (others === undefined) {
        const message = `falls back to \`${title}\`, which is not an imported model`;
        omitted.push({ path, message });
        continue;
      }
      const last = Math.max(...draft.places.map(({ tier = 1 }) => tier));
      for (const { deployment, tier = 1 } of others) {
        const whyNotThere = whyNot(draft, deployment);
        if (whyNotThere === null) draft.places.push({ deployment, tier: last + tier });
        else {
          const message = `cannot fall back from \`${from}\` to ${deployment.at}, because ${whyNotThere}`;
          omitted.push({ path, message });
        }
      }
    }
  }
}

/** Returns why calls of a model cannot fall back to a deployment of another one. null if they can. */
function whyNot(from: GroupDraft, deployment: ListedDeployment): string | null {
  if (from.title.includes('*') || deployment.title.includes('*')) {
    return 'calls of a pattern have no single name there';
  }
  if (inDialect(deployment.place, from.dialect) === null) {
    return 'they speak two dialects, and Headgate does not translate bodies';
  }
  return deployment.isAlone ? 'its budget would count in each group separately' : null;
}
