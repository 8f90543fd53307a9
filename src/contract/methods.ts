/** Methods of calls that may take a slot. HEAD and OPTIONS never do. */
export const METHODS = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'] as const;

/** All methods that are served. Any other method is rejected with 405 on every route. */
export const SERVED_METHODS: readonly string[] = [...METHODS, 'HEAD', 'OPTIONS'];

export const READING_METHODS: readonly string[] = ['GET', 'HEAD'];

/** Methods of calls with a body, such as generation. Calls of other methods mostly read results. */
export const METHODS_WITH_BODY: readonly string[] = ['POST', 'PUT', 'PATCH'];
