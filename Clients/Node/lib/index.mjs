import client from './index.js';

export const { ApnsMockError, ApnsMockExpectationError, connect, start } = client;
