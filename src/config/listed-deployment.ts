import type { ConfigInput } from '../contract/config/config.ts';

type Member = NonNullable<NonNullable<ConfigInput['groups']>[number]['members']>[number];
type Price = NonNullable<NonNullable<ConfigInput['upstreams']>[number]['prices']>[string];

/** A place where calls of a model can run, as another system lists it. */
export interface ListedDeployment {
  /** Its place in `model_list`. */
  readonly at: number;
  /** The name by which callers know the model, or a pattern of names. */
  readonly title: string;
  /** Id of the provider here, or the name of one that is not built in. */
  readonly provider: string;
  /** The name of the model there. */
  readonly model: string;
  /** Base URL. Absent: that of the provider. */
  readonly base: string | undefined;
  /** Secret with its key. Null: it has none. */
  readonly secret: string | null;
  /** True: it takes no key. */
  readonly isKeyless: boolean;
  /** Task that its key makes for the operator, as a sentence. Null: none. */
  readonly keyNote: string | null;
  readonly limits: NonNullable<Member['limits']>;
  readonly weight?: number | undefined;
  readonly tier?: number | undefined;
  readonly firstTokenMs?: number | undefined;
  readonly price?: Price | undefined;
  /** The public name of its model, where `model` is the name of a deployment. */
  readonly baseModel?: string | undefined;
  /** True: it has limits that several groups could not count together, so it is a member of one only. */
  readonly isAlone?: boolean;
}
