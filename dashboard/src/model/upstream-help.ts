import { upstreamSchema } from '../../../src/contract/config/upstream-config.ts';
import { fieldsOf } from './schema-fields.ts';

/** Descriptions of an upstream's fields, by path. */
export const UPSTREAM_HELP: ReadonlyMap<string, string> = new Map(
  fieldsOf(upstreamSchema).map(({ path, help }) => [path, help]),
);
