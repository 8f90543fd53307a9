// Step 2, of lists of models as agents keep them. check-config.ts lists all steps.

import type * as z from 'zod';
import type { ConfigInput } from '../contract/config/config.ts';
import { agentModelListSchema } from '../contract/config/foreign-schemas.ts';
import { convertModelList } from './convert-model-list.ts';
import { refused, type Converted } from './foreign-groups.ts';

type Entry = z.output<typeof agentModelListSchema>['model_list'][number];

/** Fields that say something here. */
const KNOWN = Object.keys(agentModelListSchema.shape.model_list.element.shape);

/** Tells a list of models whose entries are flat from one of deployments. */
export function isModelsOfAgents(document: unknown): boolean {
  const { model_list: list } = Object(document) as { readonly model_list?: unknown };
  return (
    Array.isArray(list) &&
    list.length > 0 &&
    list.every((entry) => {
      const { litellm_params: params, model } = Object(entry) as Readonly<Record<string, unknown>>;
      return params === undefined && typeof model === 'string';
    })
  );
}

/**
 * Turns such a list into groups with members. An entry whose rate is used up is passed over there while another of its
 * name has some left, which is what members do.
 */
export function convertModelsOfAgents(document: unknown): Converted {
  const parsed = agentModelListSchema.safeParse(document);
  if (!parsed.success) return refused(parsed.error, agentModelListSchema, document);
  const { model_list: entries, ...others } = parsed.data;
  const ignored = new Set([
    ...Object.keys(others).filter((name) => name !== 'version'),
    ...entries.flatMap((entry) => Object.keys(entry).filter((name) => !KNOWN.includes(name))),
  ]);
  const notes = entries.flatMap((entry, at) => [...keyNotes(entry, at), ...offNotes(entry, at)]);
  const model_list = entries.map((entry, at) => ({
    model_name: entry.model_name,
    litellm_params: {
      // One that names its provider says nothing of it in the model.
      model: entry.provider ? `${entry.provider}/${entry.model}` : entry.model,
      ...(entry.api_base ? { api_base: entry.api_base } : {}),
      ...(keysOf(entry).length > 0 ? { api_key: `os.environ/${variableOf(entry, at)}` } : {}),
      rpm: entry.rpm || null,
    },
  }));
  const inPlace = (path: string): string => path.replace('.litellm_params', '');
  const converted = convertModelList({ model_list }, 'picoclaw');
  if (!converted.ok) {
    const errors = converted.errors.map(({ path, message }) => ({ path: inPlace(path), message }));
    return { ok: false, errors };
  }
  const { pathOf } = converted;
  const variables = entries.map(variableOf);
  const left = [...ignored].toSorted();
  return {
    ...converted,
    config: { ...converted.config, groups: withSwitches(converted.config, entries) },
    notes: [
      // Of these keys it is told below, without variables that never were.
      ...converted.notes.filter(
        (note) => !variables.some((variable) => note.endsWith(`variable ${variable} held.`)),
      ),
      ...notes,
      ...(left.length === 0 ? [] : [`Not taken over: ${left.join(', ')}.`]),
    ],
    pathOf: (path) => inPlace(pathOf?.(path) ?? path),
  };
}

/** Switches off the members of entries that are switched off: they stand in their order in the group of their name. */
function withSwitches({ groups = [] }: ConfigInput, entries: readonly Entry[]) {
  return groups.map((group) => {
    const own = entries.filter(({ model_name: name }) => name === group.match?.models?.[0]);
    const members = group.members?.map((member, at) =>
      own[at]?.enabled === false ? { ...member, enabled: false } : member,
    );
    return { ...group, members };
  });
}

/** Says which are switched off. */
const offNotes = ({ enabled }: Entry, at: number): string[] =>
  enabled === false ? [`model_list[${at}] is switched off there, and its member here.`] : [];

/** Lists the keys of an entry, in either of the fields that they stand in. */
const keysOf = ({ api_keys: several, api_key: one }: Entry): readonly string[] =>
  several.length > 0 || !one ? several : [one];

/** Makes the name of the secret that an entry's key is to be set as. */
function variableOf({ model_name: name }: Entry, at: number): string {
  const word = name.toUpperCase().replace(/[^A-Z0-9]+/g, '_');
  return `${word.slice(0, 36)}_${at + 1}_KEY`;
}

/** Says what is to be done about keys, which are never taken over, and never repeated. */
function keyNotes(entry: Entry, at: number): string[] {
  const { length: keys } = keysOf(entry);
  const where = `model_list[${at}]`;
  if (keys === 0) return [];
  const first = `Set the secret UPSTREAM_${variableOf(entry, at)} to the key of ${where}; keys are not taken over.`;
  if (keys === 1) return [first];
  return [
    first,
    `${where} has ${keys} keys, which take turns there: add a member for each of the others, with a secret of its own.`,
  ];
}
