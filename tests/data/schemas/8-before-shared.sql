BEGIN TRANSACTION;
CREATE TABLE alembic_version (
	version_num VARCHAR(32) NOT NULL, 
	CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num)
);
INSERT INTO "alembic_version" VALUES('3');
CREATE TABLE conversations (
	n INTEGER NOT NULL, 
	id VARCHAR(32) NOT NULL, 
	user VARCHAR(200) NOT NULL, 
	title VARCHAR(200) NOT NULL, 
	created VARCHAR(40) NOT NULL, 
	changed VARCHAR(40) NOT NULL, 
	PRIMARY KEY (n), 
	UNIQUE (id)
);
INSERT INTO "conversations" VALUES(1,'b7d8553458f4','ada','What is a good diet?','2026-11-25T13:28:55.715221+00:00','2026-11-25T13:28:55.770377+00:00');
INSERT INTO "conversations" VALUES(2,'86e5f654d869','bob','Work','2026-11-25T13:28:55.831752+00:00','2026-11-25T13:28:55.849397+00:00');
CREATE TABLE fact_fields (
	fact VARCHAR(32) NOT NULL, 
	field VARCHAR(32) NOT NULL, 
	PRIMARY KEY (fact), 
	FOREIGN KEY(fact) REFERENCES facts (id) ON DELETE CASCADE
);
INSERT INTO "fact_fields" VALUES('4e63964c1c7b','health');
CREATE TABLE facts (
	n INTEGER NOT NULL, 
	id VARCHAR(32) NOT NULL, 
	user VARCHAR(200) NOT NULL, 
	text TEXT NOT NULL, 
	"key" VARCHAR(1000) NOT NULL, 
	source VARCHAR(200) NOT NULL, 
	"on" BOOLEAN NOT NULL, 
	created VARCHAR(40) NOT NULL, 
	changed VARCHAR(40) NOT NULL, 
	PRIMARY KEY (n), 
	UNIQUE (user, "key"), 
	UNIQUE (id)
);
INSERT INTO "facts" VALUES(1,'4e63964c1c7b','ada','I''m lactose intolerant.','im lactose intolerant','typed',1,'2026-11-25T13:28:55.659707+00:00','2026-11-25T13:28:55.659707+00:00');
INSERT INTO "facts" VALUES(2,'310090607a59','ada','I like tea.','i like tea','typed',0,'2026-11-25T13:28:55.674490+00:00','2026-11-25T13:28:55.681681+00:00');
INSERT INTO "facts" VALUES(3,'82c41821c5fb','bob','I''m an engineer.','im an engineer','typed',1,'2026-11-25T13:28:55.698659+00:00','2026-11-25T13:28:55.698659+00:00');
CREATE TABLE known_addresses (
	name VARCHAR(64) NOT NULL, 
	address VARCHAR(64) NOT NULL, 
	last VARCHAR(40) NOT NULL, 
	PRIMARY KEY (name, address)
);
INSERT INTO "known_addresses" VALUES('ada','192.0.2.1','2026-11-25T13:28:58.073820+00:00');
CREATE TABLE preferences (
	user VARCHAR(200) NOT NULL, 
	choices TEXT NOT NULL, 
	PRIMARY KEY (user)
);
INSERT INTO "preferences" VALUES('ada','{"k": 6}');
CREATE TABLE schema_version (
	id INTEGER NOT NULL, 
	version INTEGER, 
	PRIMARY KEY (id)
);
INSERT INTO "schema_version" VALUES(1,3);
CREATE TABLE tokens (
	id VARCHAR(32) NOT NULL, 
	user VARCHAR(64) NOT NULL, 
	label VARCHAR(100) NOT NULL, 
	hash VARCHAR(64) NOT NULL, 
	created VARCHAR(40) NOT NULL, 
	used VARCHAR(40) NOT NULL, 
	PRIMARY KEY (id)
);
INSERT INTO "tokens" VALUES('8fee7c549b4a','ada','laptop','f416a2f6b72e966f9d49d77667485f4d5bbdd6c36655dfb355f67770df82998d','2026-11-25T13:28:58.095353+00:00','');
CREATE TABLE turns (
	n INTEGER NOT NULL, 
	id VARCHAR(32) NOT NULL, 
	conversation VARCHAR(32) NOT NULL, 
	process VARCHAR(32) NOT NULL, 
	utterance TEXT NOT NULL, 
	reply TEXT NOT NULL, 
	words TEXT NOT NULL, 
	feedback INTEGER NOT NULL, 
	turn TEXT NOT NULL, 
	PRIMARY KEY (n), 
	UNIQUE (id), 
	FOREIGN KEY(conversation) REFERENCES conversations (id) ON DELETE CASCADE
);
INSERT INTO "turns" VALUES(1,'707f8f6ad1ea','b7d8553458f4','0cb779bcf05e','What is a good diet?','Lentils are rich in protein. [1]','what is a good diet?
lentils are rich in protein. [1]',1,'{"utterance":"What is a good diet?","history":[],"known":[],"choices":{"strategy":"concat_pf","loop":"grg","k":4,"library":"starter","form":"chat","loops":1,"retriever":"bm25","below":""},"id":"707f8f6ad1ea","created":"2026-11-25T13:28:55.726121Z","temporary":false,"intent":"question","english":"","asks":"","question":"","rewritten":false,"facts":[],"draft":"","iterations":[],"queries":[],"passages":[{"id":"p1","title":"Lentils","text":"Lentils are rich in protein.","score":1.5,"found_by":[],"source":"","confidence":null,"own":false}],"reserve":[],"confidence":null,"dropped":[],"digests":[],"left_out":[],"answer":{"text":"Lentils are rich in protein. [1]","unknown":false,"origin":"passages","outcome":"written"},"own_answer":"","pool":[],"reasoning":"","listed":[],"about":"","offers":[],"sentences":[],"citations":[],"status":"done","step":"","events":[],"cuts":[],"error":"","timings":{},"spent":{},"model":""}');
INSERT INTO "turns" VALUES(2,'3623e23892ae','b7d8553458f4','0cb779bcf05e','And to drink?','Oat drink.','and to drink?
oat drink.',0,'{"utterance":"And to drink?","history":[],"known":[],"choices":{"strategy":"concat_pf","loop":"grg","k":4,"library":"starter","form":"chat","loops":1,"retriever":"bm25","below":""},"id":"3623e23892ae","created":"2026-11-25T13:28:55.756712Z","temporary":false,"intent":"question","english":"","asks":"","question":"","rewritten":false,"facts":[],"draft":"","iterations":[],"queries":[],"passages":[],"reserve":[],"confidence":null,"dropped":[],"digests":[],"left_out":[],"answer":{"text":"Oat drink.","unknown":false,"origin":"passages","outcome":"written"},"own_answer":"","pool":[],"reasoning":"","listed":[],"about":"","offers":[],"sentences":[],"citations":[],"status":"done","step":"","events":[],"cuts":[],"error":"","timings":{},"spent":{},"model":""}');
INSERT INTO "turns" VALUES(3,'66cf34b8f2a6','b7d8553458f4','0cb779bcf05e','And to drink?','Tea, without milk.','and to drink?
tea, without milk.',0,'{"utterance":"And to drink?","history":[],"known":[],"choices":{"strategy":"concat_pf","loop":"grg","k":4,"library":"starter","form":"chat","loops":1,"retriever":"bm25","below":""},"id":"66cf34b8f2a6","created":"2026-11-25T13:28:55.770059Z","temporary":false,"intent":"question","english":"","asks":"","question":"","rewritten":false,"facts":[],"draft":"","iterations":[],"queries":[],"passages":[],"reserve":[],"confidence":null,"dropped":[],"digests":[],"left_out":[],"answer":{"text":"Tea, without milk.","unknown":false,"origin":"passages","outcome":"written"},"own_answer":"","pool":[],"reasoning":"","listed":[],"about":"","offers":[],"sentences":[],"citations":[],"status":"done","step":"","events":[],"cuts":[],"error":"","timings":{},"spent":{},"model":""}');
INSERT INTO "turns" VALUES(4,'3df29ab4fb3e','86e5f654d869','0cb779bcf05e','Hello','Hi.','hello
hi.',0,'{"utterance":"Hello","history":[],"known":[],"choices":{"strategy":"concat_pf","loop":"grg","k":4,"library":"starter","form":"chat","loops":1,"retriever":"bm25","below":""},"id":"3df29ab4fb3e","created":"2026-11-25T13:28:55.849037Z","temporary":false,"intent":"question","english":"","asks":"","question":"","rewritten":false,"facts":[],"draft":"","iterations":[],"queries":[],"passages":[],"reserve":[],"confidence":null,"dropped":[],"digests":[],"left_out":[],"answer":{"text":"Hi.","unknown":false,"origin":"passages","outcome":"written"},"own_answer":"","pool":[],"reasoning":"","listed":[],"about":"","offers":[],"sentences":[],"citations":[],"status":"done","step":"","events":[],"cuts":[],"error":"","timings":{},"spent":{},"model":""}');
CREATE TABLE users (
	name VARCHAR(64) NOT NULL, 
	hash VARCHAR(300) NOT NULL, 
	created VARCHAR(40) NOT NULL, 
	PRIMARY KEY (name)
);
INSERT INTO "users" VALUES('ada','scrypt$16384$8$5$DVPUmi+YZdxoy35MTqqpvA==$3Va5V3Qrl0ATT/YTRuMv0WNH8t4dUjOJe2o6mai3Wm0=','2026-11-25T13:28:58.062752+00:00');
CREATE TABLE uses (
	turn VARCHAR(32) NOT NULL, 
	fact VARCHAR(32) NOT NULL, 
	PRIMARY KEY (turn, fact), 
	FOREIGN KEY(turn) REFERENCES turns (id) ON DELETE CASCADE
);
INSERT INTO "uses" VALUES('707f8f6ad1ea','4e63964c1c7b');
CREATE TABLE versions (
	turn VARCHAR(32) NOT NULL, 
	original VARCHAR(32) NOT NULL, 
	shown INTEGER NOT NULL, 
	side INTEGER NOT NULL, 
	PRIMARY KEY (turn), 
	FOREIGN KEY(turn) REFERENCES turns (id) ON DELETE CASCADE, 
	FOREIGN KEY(original) REFERENCES turns (id) ON DELETE CASCADE
);
INSERT INTO "versions" VALUES('3623e23892ae','3623e23892ae',0,0);
INSERT INTO "versions" VALUES('66cf34b8f2a6','3623e23892ae',1,0);
CREATE INDEX ix_conversations_user ON conversations (user);
CREATE INDEX turns_of ON turns (conversation, n);
CREATE INDEX ix_uses_fact ON uses (fact);
CREATE INDEX ix_versions_original ON versions (original);
CREATE INDEX ix_tokens_user ON tokens (user);
COMMIT;
