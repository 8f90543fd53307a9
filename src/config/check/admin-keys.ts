import { TOKEN_ACTOR } from '../../contract/config/keys.ts';
import type { Config } from '../../contract/config/config.ts';
import type { FieldError } from '../field-error.ts';

/** Finds admin keys by an id that the audit log and sessions know as somebody else. */
export function adminKeyErrors({ admin_keys: keys }: Config): FieldError[] {
  return keys.flatMap(({ id }, index) => {
    if (id !== TOKEN_ACTOR) return [];
    const message = 'is what the audit log calls the ADMIN_TOKEN; take another one';
    return [{ path: `admin_keys[${index}].id`, message }];
  });
}
